#include "tests/fuzz/use_program.h"

#include "model/cost/cost_table.h"
#include "model/hlo/proto_reader.h"
#include "model/hlo/text_reader.h"
#include "model/program/validate.h"
#include "sim/report/inspect_report.h"
#include "tests/model/cost/toy_machine.h"

namespace spillway::testing {

bool use_program(std::shared_ptr<const std::string> content) {
  Result<Program> program = hlo::looks_like_proto(*content, "damaged")
                                ? hlo::read_hlo_proto(std::move(content), "damaged")
                                : hlo::read_hlo_text(std::move(content), "damaged");
  if (!program.ok()) {
    to_text(program.error());
    return false;
  }
  if (const auto unsound = validate(*program)) {
    to_text(*unsound);
    return false;
  }
  const InspectReport report = make_inspect_report(*program, NameList{});
  render_text(report);
  render_json(report);
  const HardwareProfile machine = toy_machine();
  costs(*program, machine, make_topology(program->device_count(), machine));
  return true;
}

}  // namespace spillway::testing
