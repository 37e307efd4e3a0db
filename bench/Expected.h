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
  if (step == "d") // one after the first update
    return {1e-6, 1e-6, 5e-5};
  if (step == "h" || step == "i") // in f64; the limit by hand prints nine digits
    return {2e-9};
  return {step == "g" || step == "k" ? 1e-6 : 1e-5};
}

/// The first figure that is off, or nothing. Of a gradient the figures are its sum and that of its sizes; of several
/// those of each, or of all together.
inline std::string compare(const std::string &step, const std::vector<double> &got, const nlohmann::json &row) {
  std::vector<double> want, allowed = tolerances(step);
  if (row.contains("losses"))
    want = row["losses"].get<std::vector<double>>();
  else
    for (const auto &sums : row["sums"])
      for (size_t i = 0; i < 2; ++i)
        if (got.size() == 2 && want.size() == 2)
          want[i] += sums[i].get<double>();
        else
          want.push_back(sums[i].get<double>());
  for (size_t i = 0; i < want.size(); ++i) {
    // A sum of gradients is compared with the sum of their sizes.
    double scale = row.contains("sums") ? want[i | 1] : std::fabs(want[i]);
    double tolerance = allowed[std::min(i, allowed.size() - 1)],
           off = i < got.size() ? std::fabs(got[i] - want[i]) / scale : INFINITY;
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
