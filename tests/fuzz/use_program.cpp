#include "tests/fuzz/use_program.h"

#include "model/cost/cost_table.h"
#include "model/hlo/proto_reader.h"
#include "model/hlo/text_reader.h"
#include "model/program/validate.h"
#include "sim/report/inspect_report.h"
#include "tests/model/cost/toy_machine.h"

namespace spillway::testing {
namespace {

bool use(const Result<Program>& program) {
  if (!program.ok()) {
    to_text(program.error());
    return false;
  }
  if (const auto unsound = validate(*program)) {
    to_text(*unsound);
    return false;
  }
  const HardwareProfile machine = toy_machine();
  const Topology topology = make_topology(program->device_count(), machine);
  const Result<Budget> budget = make_budget(machine, topology, {});
  const NameList names{{{"x", {64}, ElementType::kF32, "step.py:1", 4}}};
  const InspectReport report =
      make_inspect_report(*program, names,
                          {.dump = {.host_placements_asked = 1, .compiled_for_hbm = Bytes(1 << 20)},
                           .hardware = &machine,
                           .budget = budget.ok() ? &*budget : nullptr,
                           .jaxlib = parse_jaxlib_version("0.10.2")});
  render_text(report);
  render_json(report);
  costs(*program, machine, topology);
  return true;
}

}  // namespace

bool use_program(std::shared_ptr<const std::string> content) {
  if (hlo::looks_like_proto(*content, "damaged")) return use_proto(std::move(content));
  return use(hlo::read_hlo_text(std::move(content), "damaged"));
}

bool use_proto(std::shared_ptr<const std::string> content) {
  return use(hlo::read_hlo_proto(std::move(content), "damaged"));
}

}  // namespace spillway::testing
