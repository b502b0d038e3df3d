// Plan files: what is written is read back, and nothing else is.
#include <doctest/doctest.h>

#include "model/plan/read_plan_file.h"
#include "model/plan/write_plan_file.h"
#include "tests/model/plan/toy_plan.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

using testing::toy_plan;

/// The toy's text with one piece in place of another, which must be there.
std::string toy_with(const std::string& piece, const std::string& other) {
  std::string text = to_yaml(toy_plan());
  const std::size_t at = text.find(piece);
  REQUIRE_MESSAGE(at != std::string::npos, piece);
  return text.replace(at, piece.size(), other);
}

TEST_CASE("a plan that is written and read is the same plan") {
  const PlanFile plan = toy_plan();
  const std::string text = to_yaml(plan);
  const Result<PlanFile> read = parse_plan_file(text, "toy.yaml");
  REQUIRE_MESSAGE(read.ok(), to_text(read.error()));
  CHECK(to_yaml(*read) == text);
  CHECK(read->program.fingerprint == "00000000000000ff");
  CHECK(read->program.arguments == Bytes(400));
  CHECK(read->topology->hosts == 2);
  CHECK(read->topology->gpus == 4);
  CHECK(read->jaxlib == plan.jaxlib);
  CHECK(read->fits);
  CHECK(read->policy == plan.policy);
  REQUIRE(read->residuals.size() == 4);
  CHECK(read->residuals[1].names == plan.residuals[1].names);
  CHECK(read->residuals[2].names.empty());
  CHECK(read->residuals[0].choice == Choice::kOffload);
  REQUIRE(read->state.size() == 2);
  CHECK(read->state[0].kind == StateClass::kOptimizer);
  CHECK(read->state[0].on_host == Bytes(200));
  CHECK(read->predicted.times.kernels == plan.predicted.times.kernels);
  CHECK(read->predicted.times.idle == plan.predicted.times.idle);
  CHECK(read->predicted.dot_flops == plan.predicted.dot_flops);
  REQUIRE(read->predicted.buffers.size() == 1);
  CHECK(read->predicted.buffers[0].origin == "jit(f)/while\n");
  CHECK(read->predicted.buffers[0].count == 2);
  CHECK(read->predicted.clones.empty());
  CHECK(read->flags == plan.flags);
  CHECK(read->recommended_flags == plan.recommended_flags);
  CHECK(read->environment == plan.environment);
  CHECK(read->maxtext == plan.maxtext);
  CHECK(read->jax_policy == plan.jax_policy);
  CHECK(read->jax_state == plan.jax_state);
}

TEST_CASE("what nobody stated is left out of the file") {
  PlanFile plan = toy_plan();
  plan.topology.reset();
  plan.jaxlib.reset();
  plan.pageable_copies.reset();
  plan.anchored_on.reset();
  const std::string text = to_yaml(plan);
  CHECK(text.find("topology") == std::string::npos);
  CHECK(text.find("jaxlib") == std::string::npos);
  CHECK(text.find("pageable") == std::string::npos);
  CHECK(text.find("anchored") == std::string::npos);
  const Result<PlanFile> read = parse_plan_file(text, "toy.yaml");
  REQUIRE_MESSAGE(read.ok(), to_text(read.error()));
  CHECK_FALSE(read->topology.has_value());
  CHECK_FALSE(read->jaxlib.has_value());
}

TEST_CASE("anything else is refused, with its place") {
  struct Row {
    const char* name;
    std::string text, message;
  };
  const Row rows[] = {
      {"another schema", toy_with("plan_file/1", "plan_file/2"),
       "toy.yaml:3:9: error: the schema 'spillway.plan_file/2' is not known\n"
       "   3 | schema: spillway.plan_file/2\n"
       "     |         ^ this version reads spillway.plan_file/1"},
      {"an unknown key", toy_with("hardware: toy", "hardware: toy\nhardwear: toy"),
       "toy.yaml:11:1: error: 'hardwear' is not a known key\n"
       "  11 | hardwear: toy\n"
       "     | ^ did you mean 'hardware'?"},
      {"a key twice", toy_with("hardware: toy", "hardware: toy\nhardware: toy"),
       "toy.yaml:11:1: error: 'hardware' is given twice\n"
       "  11 | hardware: toy\n"
       "     | ^ first in line 10"},
      {"a missing key", toy_with("hardware: toy\n", ""),
       "toy.yaml:1:1: error: 'hardware' is missing\n"
       "   1 | # What was planned, and what a step then holds, moves and takes on one device.\n"
       "     | ^ for example hardware: \"\""},
      {"a misspelt key inside", toy_with("  devices: 8", "  device: 8"),
       "toy.yaml:8:3: error: 'device' of 'program' is not a known key\n"
       "   8 |   device: 8\n"
       "     |   ^ did you mean 'devices'?"},
      {"a word for a number", toy_with("  devices: 8", "  devices: eight"),
       "toy.yaml:8:12: error: 'devices' of 'program' is 'eight'\n"
       "   8 |   devices: eight\n"
       "     |            ^ a whole number, not below 0"},
      {"a fraction of a byte", toy_with("argument_bytes: 400", "argument_bytes: 400.5"),
       "toy.yaml:9:19: error: 'argument_bytes' of 'program' is '400.5'\n"
       "   9 |   argument_bytes: 400.5\n"
       "     |                   ^ a whole number, not below 0"},
      {"a time that is none", toy_with("step_seconds: 3", "step_seconds: .nan"),
       "'step_seconds' of 'predicted' is '.nan'"},
      {"a choice that is none", toy_with("  q: offload", "  q: host"),
       "toy.yaml:24:6: error: 'q' of 'policy' is 'host'\n"
       "  24 |   q: host\n"
       "     |      ^ one of keep, offload, recompute"},
      {"a name twice", toy_with("  q: offload", "  q: offload\n  q: keep"),
       "toy.yaml:25:3: error: 'q' of 'policy' is given twice"},
      {"a list for a mapping", toy_with("budget:\n", "budget: []\nbudget_:\n"),
       "toy.yaml:15:1: error: 'budget' must be a mapping"},
      {"a mapping for a list", toy_with("reloads: []", "reloads: {}"),
       "'reloads' of 'predicted' must be a list"},
      {"yes for true", toy_with("fits: true", "fits: yes"), "'fits' is 'yes'"},
      {"a topology of one number", toy_with("2x4", "8"), "'topology' is '8'"},
      {"an edited policy", toy_with("  q: offload", "  q: keep"),
       "'q' is to be offload here, and keep in 'policy'"},
      {"a name that the policy lacks", toy_with("  wi_0: keep\n", ""), "'wi_0' is not in 'policy'"},
      {"an entry twice",
       toy_with("residuals:\n",
                "residuals:\n  - {names: [q], shape: \"bf16[1,8]\", layers: 4, "
                "bytes: 64, choice: offload}\n"),
       "error: 'q' stands there twice"},
      {"a class twice",
       toy_with("state:\n", "state:\n  - {class: params, bytes: 1, host_bytes: 0}\n"),
       "error: 'params' stands there twice"},
      {"no layers", toy_with("layers: 4, bytes: 64", "layers: 0, bytes: 64"),
       "error: a residual has a layer and a byte at least"},
      {"more on the host than there is",
       toy_with("{class: params, bytes: 100, host_bytes: 0}",
                "{class: params, bytes: 100, host_bytes: 101}"),
       "error: more is on the host than there is"},
      {"bytes that nothing has", toy_with("temp_bytes: 500", "temp_bytes: 9223372036854775807"),
       "that is more than any step has"},
      {"a time that no step takes", toy_with("step_seconds: 3", "step_seconds: 1e300"),
       "that is more than any step has"},
      {"parts longer than the step", toy_with("step_seconds: 3", "step_seconds: 1"),
       "'exposed_collective_seconds' of 'predicted' is above 'step_seconds'"},
      {"a pool above the HBM", toy_with("pool_bytes: 750", "pool_bytes: 1001"),
       "'pool_bytes' of 'budget' is above 'hbm_bytes'"},
      {"it does not fit", toy_with("total_device_bytes: 700", "total_device_bytes: 741"),
       "'fits' is true, and what is predicted does not stay within the budget"},
      {"it fits", toy_with("fits: true", "fits: false"),
       "'fits' is false, and what is predicted stays within the budget"},
      {"arguments above everything", toy_with("  argument_bytes: 200", "  argument_bytes: 701"),
       "'argument_bytes' of 'predicted' is above 'total_device_bytes'"},
      {"no device", toy_with("  devices: 8", "  devices: 0"), "a step runs on one device at least"},
      {"copies without a rate",
       toy_with("pageable_copies_bytes_per_second: 1.4e+09", "pageable_copies_bytes_per_second: 0"),
       "from 1 MB/s to 10 TB/s, for example 1.4GB/s"},
      {"a rate that no copy has", toy_with("bytes_per_second: 1.4e+09", "bytes_per_second: 1e-300"),
       "from 1 MB/s to 10 TB/s, for example 1.4GB/s"},
      {"more layers than its bytes are", toy_with("layers: 4, bytes: 64", "layers: 5, bytes: 64"),
       "toy.yaml:31:5: error: 64 bytes are no 5 layers of bf16[1,8]\n"
       "  31 |   - {names: [q], shape: \"bf16[1,8]\", layers: 5, bytes: 64, choice: offload}\n"
       "     |     ^ a plan file is made by plan or whatif, and not edited"},
      {"no shape", toy_with("\"bf16[1,8]\", layers", "\"\", layers"), "'' is no shape of an array"},
      {"a type that is none", toy_with("\"bf16[1,8]\", layers", "\"bf17[1,8]\", layers"),
       "'bf17[1,8]' is no shape of an array"},
      {"a shape and more", toy_with("\"bf16[1,8]\", layers", "\"bf16[1,8] x\", layers"),
       "'bf16[1,8] x' is no shape of an array"},
      {"a shape without a byte", toy_with("\"bf16[1,8]\", layers", "\"bf16[0]\", layers"),
       "'bf16[0]' is no shape of an array"},
      {"a stack without its name", toy_with("names: [q]", "names: []"),
       "toy.yaml:24:3: error: no residual is called 'q'"},
      {"a name of the policy that nothing has",
       toy_with("  q: offload", "  q: offload\n  q2: keep"),
       "toy.yaml:25:3: error: no residual is called 'q2'"},
      {"a name twice in one residual", toy_with("names: [q]", "names: [q, q]"),
       "error: 'q' stands there twice"},
      {"an array that is there no times", toy_with("bytes: 16, count: 4", "bytes: 16, count: 0"),
       "error: 'count' is how often it is there, once at least"},
      {"a part that no step has", toy_with("\"between the loops\"", "lunch"),
       "error: 'lunch' is no part of a step"},
      {"a step of a thousand years", toy_with("step_seconds: 3", "step_seconds: 3e10"),
       "that is more than any step takes"},
      {"time that runs backwards", toy_with("step_seconds: 3", "step_seconds: -3"),
       "a number, not below 0"},
      {"hosts that are not the devices", toy_with("2x4", "2x8"),
       "'topology' has another number of devices than 'program'"},
      {"a peak above everything", toy_with("live_peak_bytes: 690", "live_peak_bytes: 701"),
       "'live_peak_bytes' of 'predicted' is above 'total_device_bytes'"},
      {"more state than arguments", toy_with("params, bytes: 100", "params, bytes: 401"),
       "error: the program has fewer bytes of arguments"},
      {"state on the host that is no argument",
       toy_with("host_argument_bytes: 200", "host_argument_bytes: 199"),
       "'host_argument_bytes' of 'predicted' is below what 'state' has on the host"},
      {"no mapping at all", "- keep\n", "toy.yaml:1:1: error: a mapping is expected"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Result<PlanFile> read = parse_plan_file(row.text, "toy.yaml");
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().kind == ErrorKind::kInput);
    CHECK(read.error().where.line.has_value());
    const std::string message = to_text(read.error());
    CAPTURE(message);
    CHECK(message.find(row.message) != std::string::npos);
  }
}

TEST_CASE("values without names have numbers in the policy") {
  PlanFile plan = toy_plan();
  plan.policy.emplace_back("r2", Choice::kKeep);
  CHECK(parse_plan_file(to_yaml(plan), "toy.yaml").ok());
  plan.policy.back().first = "r2x";
  CHECK_FALSE(parse_plan_file(to_yaml(plan), "toy.yaml").ok());
}

TEST_CASE("a file that is not there") {
  const Result<PlanFile> read = read_plan_file("nowhere/plan.yaml");
  REQUIRE_FALSE(read.ok());
  CHECK(to_text(read.error()).starts_with("nowhere/plan.yaml: error: "));
}

TEST_CASE("a fingerprint is of one program") {
  const auto identity_of = [](const std::string& instructions) {
    const Program program = testing::read_entry(instructions);
    return identify(program, sum_totals(assign_memory(program, testing::toy_schedule(program))));
  };
  const std::string text =
      "  %a = f32[8] parameter(0)\n  %b = f32[8] negate(%a)\n  ROOT %c = f32[8] add(%a, %b)\n";
  const ProgramIdentity identity = identity_of(text);
  CHECK(identity.name == "toy");
  CHECK(identity.instructions == 3);
  CHECK(identity.arguments == Bytes(32));
  CHECK(identity.fingerprint.size() == 16);
  CHECK(identity_of(text).fingerprint == identity.fingerprint);
  const std::pair<const char*, const char*> others[] = {
      {"add(%a, %b)", "add(%b, %a)"}, {"add(%a", "multiply(%a"}, {"%c", "%d"}};
  for (const auto& [piece, other] : others) {
    CAPTURE(other);
    std::string changed = text;
    changed.replace(changed.find(piece), std::string_view(piece).size(), other);
    CHECK(identity_of(changed).fingerprint != identity.fingerprint);
    CHECK(identity_of(changed).arguments == identity.arguments);
  }
}

}  // namespace
}  // namespace spillway
