#include "model/cost/replica_groups.h"

#include <doctest/doctest.h>

#include "model/cost/device_groups.h"
#include "tests/model/cost/toy_machine.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_program;
using Groups = std::vector<IdGroup>;

TEST_CASE("every form of replica_groups is read") {
  struct Row {
    std::string text;
    Groups groups;
  };
  const Row rows[] = {
      {"{}", {}},
      {"{{0,1},{2,3}}", {{0, 1}, {2, 3}}},
      {"{{0, 1}, {2, 3}}", {{0, 1}, {2, 3}}},
      {"{{0,1,2,3}}", {{0, 1, 2, 3}}},
      {"{{}}", {{}}},
      {"[2,4]<=[8]", {{0, 1, 2, 3}, {4, 5, 6, 7}}},
      {"[2,4]<=[4,2]T(1,0)", {{0, 2, 4, 6}, {1, 3, 5, 7}}},
      {"[4,2]<=[2,2,2]T(1,0,2)", {{0, 1}, {4, 5}, {2, 3}, {6, 7}}},
      {"[1,2]<=[2]T(0)", {{0, 1}}},
      {"mesh['x'=4] {'x'}", {{0, 1, 2, 3}}},
      {"mesh['axis_0'=2,'axis_1'=3] {'axis_0'}", {{0, 3}, {1, 4}, {2, 5}}},
      {"mesh['axis_0'=2,'axis_1'=3] {'axis_1'}", {{0, 1, 2}, {3, 4, 5}}},
      {"mesh['a'=2,'b'=1,'c'=2] {'a','c'}", {{0, 1, 2, 3}}},
      {"mesh['a'=2,'b'=2] {}", {{0}, {1}, {2}, {3}}},
      // the outer half of an axis of 8, its middle, its inner quarter
      {"mesh['x'=8] {'x':(1)2}", {{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
      {"mesh['x'=8] {'x':(2)2}", {{0, 2}, {1, 3}, {4, 6}, {5, 7}}},
      {"mesh['x'=8] {'x':(2)4}", {{0, 1, 2, 3}, {4, 5, 6, 7}}},
      {"mesh['x'=8] {'x':(1)2,'x':(4)2}", {{0, 1, 4, 5}, {2, 3, 6, 7}}},
      {"mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'y'}", {{0, 2}, {1, 3}}},
      {"mesh['x'=4], device_ids=(3,1,0,2) {'x'}", {{3, 1, 0, 2}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto groups = parse_replica_groups(row.text);
    REQUIRE(groups.has_value());
    CHECK(*groups == row.groups);
  }
}

TEST_CASE("damaged replica_groups are refused, not guessed") {
  const std::string rows[] = {
      "",
      "nonsense",
      "{{0,1}",
      "{{0,1},}",
      "{0,1}",
      "{{0,1}} and more",
      "{{0,0}}",
      "{{0,-1}}",
      "{{0,99999999999}}",
      "[2,4]<=[9]",
      "[2,4]<=[4,2]T(1,1)",
      "[2,4]<=[4,2]T(1)",
      "[2,4]<=[4,2]T(1,2)",
      "[2,2,2]<=[8]",
      "[-2,-4]<=[8]",
      "[99999,99999]<=[99999,99999]",
      "mesh['x'=8] {'y'}",
      "mesh['x'=8] {5}",
      "mesh['x'=8]",
      "mesh['x'=0] {'x'}",
      "mesh['x'=8] {'x':(3)2}",
      "mesh['x'=8] {'x':(9999999999)2}",
      "mesh['x'=4], device_ids=(1,2,3) {'x'}",
      "mesh['x'=4], device_ids=(1,2,3,3) {'x'}",
      "mesh['x'=4], device_ids=([4,2]T(1,0)) {'x'}",
      "mesh['x'=4,] {'x'}",
      "mesh[x=4] {'x'}",
  };
  for (const std::string& text : rows) {
    CAPTURE(text);
    CHECK_FALSE(parse_replica_groups(text).has_value());
  }
}

TEST_CASE("source_target_pairs are groups of two") {
  CHECK(parse_source_target_pairs("{{0,1},{1,0}}") == Groups{{0, 1}, {1, 0}});
  CHECK(parse_source_target_pairs("{}") == Groups{});
  CHECK_FALSE(parse_source_target_pairs("{{0,1,2}}").has_value());
  CHECK_FALSE(parse_source_target_pairs("{{0,-1}}").has_value());
  CHECK_FALSE(parse_source_target_pairs("[2,2]<=[4]").has_value());
}

TEST_CASE("ids of replicas and partitions become ids of devices") {
  // two replicas of two partitions: device = 2 x replica + partition
  struct Row {
    std::string line;
    Groups groups;
  };
  const Row rows[] = {
      {"all-gather(%p), channel_id=1, replica_groups={{0,3},{1,2}}, dimensions={0}, "
       "use_global_device_ids=true",
       {{0, 3}, {1, 2}}},
      {"all-gather(%p), replica_groups={{0,1}}, dimensions={0}", {{0, 2}, {1, 3}}},
      {"all-gather(%p), replica_groups={}, dimensions={0}", {{0, 2}, {1, 3}}},
      {"all-gather(%p), channel_id=1, replica_groups={{0},{1}}, dimensions={0}", {{0, 1}, {2, 3}}},
      {"all-gather(%p), channel_id=1, replica_groups={}, dimensions={0}", {{0, 1, 2, 3}}},
      {"all-to-all(%p), channel_id=1, replica_groups={{0,1}}, dimensions={0}", {{0, 1}, {2, 3}}},
      {"collective-permute(%p), channel_id=1, source_target_pairs={{0,1}}", {{0, 1}, {2, 3}}},
      {"collective-permute(%p), source_target_pairs={{0,1},{1,0}}",
       {{0, 2}, {1, 3}, {2, 0}, {3, 1}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    const Program program = toy_program(
        "ENTRY %main (p: f32[8]) -> f32[8] {\n"
        "  %p = f32[8]{0} parameter(0)\n  ROOT %x = f32[8]{0} " +
            row.line + "\n}\n",
        ", replica_count=2, num_partitions=2");
    const auto groups = device_groups(program, find_instruction(program, "x"));
    REQUIRE(groups.has_value());
    CHECK(*groups == row.groups);
  }
}

TEST_CASE("ids that the program has not are not understood") {
  const auto known = [](const std::string& line, const std::string& header) {
    const Program program = toy_program(
        "ENTRY %main (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
        "  ROOT %x = f32[8]{0} " +
            line + "\n}\n",
        header);
    return device_groups(program, find_instruction(program, "x")).has_value();
  };
  const std::string two_by_two = ", replica_count=2, num_partitions=2";
  CHECK(known("all-gather(%p), replica_groups={{0,1}}, dimensions={0}", two_by_two));
  CHECK_FALSE(known("all-gather(%p), replica_groups={{0,2}}, dimensions={0}", two_by_two));
  CHECK_FALSE(
      known("all-to-all(%p), channel_id=1, replica_groups={{1,2}}, dimensions={0}", two_by_two));
  const std::string global = "all-gather(%p), channel_id=1, use_global_device_ids=true, ";
  CHECK(known(global + "replica_groups={{0,3}}, dimensions={0}", two_by_two));
  CHECK_FALSE(known(global + "replica_groups={{0,4}}, dimensions={0}", two_by_two));
  CHECK_FALSE(known("collective-permute(%p), source_target_pairs={{0,2}}", two_by_two));
  CHECK_FALSE(known("collective-permute(%p), source_target_pairs={{0,1},{0,1},{0,1}}", two_by_two));
  CHECK_FALSE(known("all-gather(%p), replica_groups={{},{0,1}}, dimensions={0}", two_by_two));
  // Written out these were 2^30 ids.
  CHECK_FALSE(known("all-gather(%p), channel_id=1, replica_groups=[1,1024]<=[1024], dimensions={0}",
                    ", num_partitions=1048576"));
}

}  // namespace
}  // namespace spillway
