// Prints the limits of this machine, measured once and kept (runtime/Limits.h says where and how).
//   limits [--again] [--json]
#include "runtime/Limits.h"

#include <cstdio>
#include <iostream>

int main(int argc, char **argv) {
  bool again = false, json = false;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--again")
      again = true;
    else if (word == "--json")
      json = true;
    else {
      std::fprintf(stderr, "usage: limits [--again] [--json]\n");
      return 2;
    }
  }
  bool written = false;
  wg::runtime::Limits limits = wg::runtime::limits(/*quick=*/false, again, &written);
  if (!written)
    std::fprintf(stderr, "limits: %s cannot be written\n", wg::runtime::limitsFile().c_str());
  if (json) {
    std::cout << wg::runtime::toJson(limits).dump(2) << "\n";
    return 0;
  }
  std::printf("%s, cpuid %s, measured %s\n\n", limits.cpu.c_str(), limits.signature.c_str(), limits.measured.c_str());
  std::string threads = limits.threads == 1 ? "all: 1 thread" : std::to_string(limits.threads) + " threads";
  std::printf("| %-30s | %9s | %9s |         |\n|---|--:|--:|---|\n", "peak", "1 thread", threads.c_str());
  for (const wg::runtime::Peak &peak : limits.peaks)
    std::printf("| %-30s | %9.1f | %9.1f | %-7s |\n", peak.name.c_str(), peak.one, peak.all, peak.unit.c_str());
  std::printf("\n| %-30s | %8s | %27s | %27s |\n| %-30s | %8s |", "GB/s, one thread and all", "KiB", "1 thread",
              threads.c_str(), "", "touched");
  for (int i = 0; i < 2; ++i)
    std::printf(" %7s | %7s | %7s |", "read", "write", "copy");
  std::printf("\n|---|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const wg::runtime::Level &level : limits.levels) {
    std::printf("| %-30s | %8lld |", level.name.c_str(), static_cast<long long>(level.touched >> 10));
    for (const wg::runtime::Bandwidth *each : {&level.one, &level.all})
      for (double figure : {each->read, each->write, each->copy})
        figure ? std::printf(" %7.1f |", figure) : std::printf(" %7s |", "-");
    std::printf("\n");
  }
  for (const std::string &what : limits.skipped)
    std::printf("\nskipped: %s\n", what.c_str());
  return 0;
}
