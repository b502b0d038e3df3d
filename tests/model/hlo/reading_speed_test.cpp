// How fast HLO text is read. A figure, not a check: run by hand, in a release build, on an idle
// core:
//   spillway_tests --no-skip --test-case="speed of reading"
#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <string>

#include "model/base/read_file.h"
#include "model/hlo/text_reader.h"
#include "model/program/validate.h"
#include "tests/golden.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Times {
  double read = 1e9, validate = 1e9;
};

/// The best of many runs.
Times measure(const std::shared_ptr<const std::string>& text) {
  Times best;
  for (int run = 0; run < 20; ++run) {
    const double start = cpu_seconds();
    const Result<Program> program = hlo::read_hlo_text(text, "text");
    const double done = cpu_seconds();
    REQUIRE(program.ok());
    CHECK(validate(*program) == std::nullopt);
    best.read = std::min(best.read, done - start);
    best.validate = std::min(best.validate, cpu_seconds() - done);
  }
  return best;
}

TEST_CASE("speed of reading" * doctest::skip()) {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  for (const char* id : {"l405b_full", "l8b_unr32_full", "ds671_full", "v0_8_3_unroll_save"}) {
    const std::string end = "_gpu_after_optimizations.txt.gz";
    for (const auto& entry : std::filesystem::directory_iterator(*corpus / id)) {
      if (!entry.path().string().ends_with(end)) continue;
      const auto text = read_file(entry.path().string());
      REQUIRE(text.ok());
      const double megabytes = static_cast<double>((*text)->size()) / 1e6;
      const Times times = measure(*text);
      MESSAGE(std::string(id) << ": " << megabytes << " MB, read at " << megabytes / times.read
                              << " MB/s, validation " << 100 * times.validate / times.read
                              << " % of it");
    }
  }
}

}  // namespace
}  // namespace spillway
