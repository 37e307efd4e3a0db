// Are a step's figures right? Its losses or sums beside those of expected.jsonl, within the tolerances of
// peers/STEPS.md.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace bench {

/// The rows of expected.jsonl by step.
inline std::map<std::string, nlohmann::json> expected() {
  std::map<std::string, nlohmann::json> rows;
  std::ifstream file(WENGERT_BENCH_DIR "/expected.jsonl");
  for (std::string line; std::getline(file, line);) {
    nlohmann::json row = nlohmann::json::parse(line);
    rows[row["step"]] = row;
  }
  return rows;
}

/// Relative, of the first losses; the last one for all that follow.
inline std::vector<double> tolerances(const std::string &step) {
  if (step == "c") // a relu flips near loss 4
    return {1e-5, 1e-5, 1e-5, 1e-5, 2e-3};
  return {step == "g" || step == "k" ? 1e-6 : 1e-5};
}

/// The first figure that is off, or nothing.
inline std::string compare(const std::string &step, const std::vector<double> &got, const nlohmann::json &row) {
  std::vector<double> want, allowed = tolerances(step);
  if (row.contains("losses"))
    want = row["losses"].get<std::vector<double>>();
  else
    for (const auto &sums : row["sums"]) // of each gradient: of all together
      for (size_t i = 0; i < sums.size(); ++i)
        i < want.size() ? want[i] += sums[i].get<double>() : (want.push_back(sums[i].get<double>()), 0.0);
  double scale = row.contains("sums") ? want[1] : 0; // a sum of gradients is compared with the sum of their sizes
  for (size_t i = 0; i < want.size(); ++i) {
    double tolerance = allowed[std::min(i, allowed.size() - 1)],
           off = i < got.size() ? std::fabs(got[i] - want[i]) / (scale ? scale : std::fabs(want[i])) : INFINITY;
    if (!(off <= tolerance)) {
      char text[160];
      std::snprintf(text, sizeof text, "figure %zu is %.9g, expected %.9g: off by %.1e, allowed %.0e", i,
                    i < got.size() ? got[i] : NAN, want[i], off, tolerance);
      return text;
    }
  }
  return "";
}

} // namespace bench
