#include "model/base/spelling.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace spillway {
namespace {

TEST_CASE("the nearest name is found, and nothing far away") {
  const std::vector<std::string> names = {"gb200", "gb300", "h100", "hbm_bandwidth"};
  struct Row {
    const char* name;
    const char* expected;
  };
  const Row rows[] = {{"gb20", "gb200"},
                      {"GB200", "gb200"},
                      {"gb2000", "gb200"},
                      {"g200b", ""},
                      {"bg300", "gb300"},
                      {"hbm_bandwith", "hbm_bandwidth"},
                      {"hbm-bandwidth", "hbm_bandwidth"},
                      {"h10O", "h100"},
                      {"tpu7x", ""},
                      {"", ""}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(nearest_name(row.name, names) == row.expected);
  }
  CHECK(nearest_name(std::string(100'000, 'h'), names).empty());
  CHECK(nearest_name("h100", {}).empty());
}

}  // namespace
}  // namespace spillway
