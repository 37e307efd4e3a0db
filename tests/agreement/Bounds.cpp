#include "tests/agreement/Bounds.h"

#include "tests/Samples.h"

#include <fstream>
#include <map>
#include <stdexcept>

namespace wg::tests {

namespace {

struct Tables {
  std::map<std::string, std::vector<std::string>, std::less<>> ops, programs; ///< cells after the first, by the first
};

/// The rows between `## Agreement` and the next section: of the table that begins with `op`, and of the one that
/// begins with `programs`.
Tables readTables() {
  std::ifstream file(std::string(WENGERT_SOURCE_DIR) + "/docs/numbers.md");
  Tables tables;
  std::map<std::string, std::vector<std::string>, std::less<>> *table = nullptr;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## "))
      inside = line.starts_with("## Agreement");
    if (!inside || !line.starts_with("|") || line.starts_with("|---"))
      continue;
    std::vector<std::string> cells;
    for (std::string_view cell : detail::split(std::string_view(line).substr(1), '|'))
      cells.emplace_back(cell);
    std::string first = cells.at(0);
    cells.erase(cells.begin());
    if (first == "op" || first == "programs") {
      table = first == "op" ? &tables.ops : &tables.programs;
      continue;
    }
    std::erase(first, '`');
    if (!table || !table->emplace(first, cells).second)
      throw std::runtime_error("docs/numbers.md: a row of no table, or a second row: " + line);
  }
  if (tables.ops.empty() || tables.programs.empty())
    throw std::runtime_error("docs/numbers.md: no section Agreement with a table of ops and one of programs");
  return tables;
}

const Tables &tables() {
  static const Tables read = readTables();
  return read;
}

} // namespace

OpBound boundOf(std::string_view op, runtime::DType dtype) {
  auto row = tables().ops.find(op);
  if (row == tables().ops.end() || (dtype != runtime::DType::f64 && dtype != runtime::DType::f32))
    return {};
  const std::string &of = row->second.at(2);
  if (of != "the element" && of != "the absolute terms")
    throw std::runtime_error("docs/numbers.md: `" + std::string(op) + "` has bounds in ulp of " + of);
  return {std::stod(row->second.at(dtype == runtime::DType::f64 ? 0 : 1)), of == "the absolute terms"};
}

double boundOfPrograms(std::string_view programs) {
  auto row = tables().programs.find(programs);
  if (row == tables().programs.end())
    throw std::runtime_error("docs/numbers.md: no bound of " + std::string(programs));
  return std::stod(row->second.at(0));
}

std::vector<std::string> opsWithBounds() {
  std::vector<std::string> names;
  for (const auto &[name, cells] : tables().ops)
    names.push_back(name);
  return names;
}

} // namespace wg::tests
