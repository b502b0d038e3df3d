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
  const InspectReport report = make_inspect_report(*program, NameList{});
  render_text(report);
  render_json(report);
  const HardwareProfile machine = toy_machine();
  costs(*program, machine, make_topology(program->device_count(), machine));
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
