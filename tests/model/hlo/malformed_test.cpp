// HLO that others' readers fell over: each is refused with a place, or does no harm to any stage.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "model/hlo/text_reader.h"
#include "model/program/validate.h"
#include "tests/fuzz/use_program.h"

namespace spillway {
namespace {

/// The first line of the message, or "accepted" once every stage behind the readers is through.
std::string outcome(const std::string& text) {
  const auto content = std::make_shared<const std::string>(text);
  const Result<Program> program = hlo::read_hlo_text(content, "x.hlo");
  const auto unsound = program.ok() ? validate(*program) : program.error();
  if (unsound) {
    const std::string message = to_text(*unsound);
    return message.substr(0, message.find('\n'));
  }
  return testing::use_program(content) ? "accepted" : "refused by a later stage";
}

TEST_CASE("malformed instructions") {
  struct Row {
    std::string name;
    std::string text;  ///< in line 4, behind p = f32[2,8], i = s32[] and %sum
    std::string expected;
  };
  const std::string groups = "x = f32[2,8] all-reduce(p), to_apply=%sum, replica_groups=";
  const Row rows[] = {
      {"an all-gather along nothing", "x = f32[4,8] all-gather(p), dimensions={}",
       "x.hlo:4:3: error: all-gather 'x' needs dimensions={…} with one dimension of f32[2,8]"},
      {"an all-gather along no number", "x = f32[4,8] all-gather(p), dimensions={-1}",
       "x.hlo:4:3: error: all-gather 'x' needs dimensions={…} with one dimension of f32[2,8]"},
      {"a scan along no number",
       "x = (f32[2,8], f32[8]) scan(p, f32[8] constant({...})), dimensions={-1}, num_carries=1, "
       "to_apply=%sum",
       "accepted"},
      {"a sharding over more devices than tiles",
       "x = f32[2,8] negate(p), sharding={devices=[2,2]<=[16]}", "accepted"},
      {"groups along an axis that is not there", groups + "mesh['a'=8] {'b'}", "accepted"},
      {"groups along the fifth axis of one", groups + "mesh['a'=8] {5}", "accepted"},
      {"a mesh with three ids for four devices", groups + "mesh['a'=4], device_ids=(0,1,2) {'a'}",
       "accepted"},
      {"groups of devices that the program has not", groups + "{{0,99}}", "accepted"},
      {"groups of nobody", groups + "{{},{}}", "accepted"},
      {"groups of very many", groups + "[1,9223372036854775807]<=[9223372036854775807]",
       "accepted"},
      {"a name in braces", "x = f32[2,8] call(p), to_apply={%nope}",
       "x.hlo:4:34: error: expected the name of a computation, or its instructions in braces"},
      {"more elements than 64 bits count",
       "x = s8[4294967296,4294967296,2] broadcast(i), dimensions={}",
       "x.hlo:4:7: error: the size of a shape does not fit 64 bits"},
      {"as many elements as 64 bits count", "x = s8[9223372036854775807] broadcast(i)",
       "x.hlo:4:7: error: the size of a shape does not fit 64 bits"},
      {"many empty rows", "x = f32[9223372036854775807,0] custom-call(p), custom_call_target=\"x\"",
       "x.hlo:4:7: error: the size of a shape does not fit 64 bits"},
      {"a slice that starts outside is moved inside",
       "x = f32[2,8] dynamic-update-slice(p, f32[1,8] custom-call(), s32[] constant(99), s32[] "
       "constant(-5))",
       "accepted"},
      {"a transpose that names a dimension twice", "x = f32[8,2] transpose(p), dimensions={1,1}",
       "accepted"},
      {"a product of dimensions that are not there",
       "x = f32[] dot(p, p), lhs_contracting_dims={7}, rhs_contracting_dims={-3}", "accepted"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(outcome("HloModule toy, is_scheduled=true, num_partitions=8 "
                  "%sum { a = f32[] parameter(0) b = f32[] parameter(1) s = f32[] add(a, b) }\n"
                  "ENTRY e { p = f32[2,8] parameter(0)\n  i = s32[] parameter(1)\n  " +
                  row.text + "\n}\n") == row.expected);
  }
}

}  // namespace
}  // namespace spillway
