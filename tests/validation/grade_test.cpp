#include "validation/grade.h"

#include <doctest/doctest.h>

namespace spillway {
namespace {

TEST_CASE("verdicts, at both sides of each limit") {
  struct Row {
    const char* name;
    Tier tier;
    const char* published;
    Tolerance tolerance;
    Band band;
    Verdict expected;
  };
  const Row rows[] = {
      {"within a share", Tier::kAbsolute, "100", {0.15, true}, {115, 115}, Verdict::kHolds},
      {"above it", Tier::kAbsolute, "100", {0.15, true}, {115.1, 115.1}, Verdict::kMisses},
      {"below it", Tier::kAbsolute, "100", {0.15, true}, {84.9, 84.9}, Verdict::kMisses},
      {"a band over it", Tier::kAbsolute, "100", {0, true}, {90, 110}, Verdict::kHolds},
      {"a band beside it", Tier::kRatio, "2.9", {1.5, false}, {4.5, 6}, Verdict::kMisses},
      {"its end near enough", Tier::kRatio, "2.9", {1.5, false}, {4.39, 6}, Verdict::kHolds},
      {"of a negative number", Tier::kRatio, "-10", {0.1, true}, {-11, -11}, Verdict::kHolds},
      {"exact", Tier::kExact, "36", {0, false}, {36, 36}, Verdict::kHolds},
      {"not exact", Tier::kExact, "36", {0, false}, {36.1, 36.1}, Verdict::kMisses},
      {"all gain", Tier::kSign, "gains", {}, {1.1, 9}, Verdict::kHolds},
      {"some gain", Tier::kSign, "gains", {}, {-3, 9}, Verdict::kOpen},
      {"too little to tell", Tier::kSign, "gains", {}, {0.5, 0.9}, Verdict::kMisses},
      {"all lose", Tier::kSign, "loses", {}, {-9, -1.1}, Verdict::kHolds},
      {"gains instead", Tier::kSign, "loses", {}, {2, 3}, Verdict::kMisses},
      {"neither", Tier::kSign, "neutral", {}, {-1, 1}, Verdict::kHolds},
      {"perhaps neither", Tier::kSign, "neutral", {}, {-1, 1.1}, Verdict::kOpen},
      {"fits", Tier::kFit, "fits", {}, {1, 1}, Verdict::kHolds},
      {"should not fit", Tier::kFit, "out of memory", {}, {1, 1}, Verdict::kMisses},
      {"does not fit", Tier::kFit, "out of memory", {}, {0, 0}, Verdict::kHolds},
      {"may fit", Tier::kFit, "fits", {}, {0, 1}, Verdict::kOpen},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    PublishedRow published;
    published.tier = row.tier;
    published.published = row.published;
    published.tolerance = row.tolerance;
    CHECK(grade(published, row.band) == row.expected);
  }
}

TEST_CASE("bands and errors") {
  const Band band = band_of({3, 1, 2});
  CHECK(band.low == 1);
  CHECK(band.high == 3);
  CHECK(band.width() == 2);
  PublishedRow row;
  row.published = "4";
  CHECK(error_of(row, band) == -0.5);
}

}  // namespace
}  // namespace spillway
