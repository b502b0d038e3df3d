#include "model/plan/host_pool.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace spillway {
namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

TEST_CASE("a pool grows by regions") {
  struct Row {
    std::string name;
    std::vector<std::int64_t> requests;  // MiB
    std::int64_t pinned;
    std::int64_t limit = 64 * 1024;
  };
  const Row rows[] = {
      {"nothing asked", {}, 0},
      {"the first region", {1}, 2},
      {"room that is left", {1, 1}, 2},
      {"the second is twice as large", {2, 1}, 6},
      {"and the third again", {2, 4, 1}, 14},
      {"a power of two for a large one", {129}, 256},
      {"exactly a power of two", {128}, 128},
      {"behind a large one the same again", {129, 200}, 512},
      {"and then twice that", {129, 200, 200}, 1024},
      {"what is left of a region, to the last", {100, 6, 22}, 128},
      {"14 GiB take 16", {14 * 1024}, 16 * 1024},
      {"the limit cuts the last region", {33 * 1024}, 40 * 1024, 40 * 1024},
      {"no room below the limit", {33 * 1024, 10 * 1024}, 40 * 1024, 40 * 1024},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    std::vector<Bytes> requests;
    for (const std::int64_t mebibytes : row.requests)
      requests.push_back(Bytes(mebibytes * kMebibyte));
    CHECK(pinned_by_growth(requests, Bytes(row.limit * kMebibyte)) ==
          Bytes(row.pinned * kMebibyte));
  }
}

TEST_CASE("requests are rounded up to 256 B") {
  const std::vector<Bytes> two = {Bytes(kMebibyte - 255), Bytes(kMebibyte)};
  CHECK(pinned_by_growth(two, Bytes(kGibibyte)) == Bytes(2 * kMebibyte));
  const std::vector<Bytes> above = {Bytes(kMebibyte + 1), Bytes(kMebibyte)};
  CHECK(pinned_by_growth(above, Bytes(kGibibyte)) == Bytes(6 * kMebibyte));
}

}  // namespace
}  // namespace spillway
