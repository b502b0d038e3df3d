#include "model/spec/step_program.h"

#include "model/hlo/text_reader.h"
#include "model/spec/saved_tensors.h"

namespace spillway {
namespace {

/// Names as a sidecar has them, with shapes as one device has them: the program's stacks are
/// compared with those, and a share of one is a share.
NameList list_names(const StepSpec& step) {
  NameList list;
  list.devices = step.mesh.devices();
  for (const SavedTensor& tensor : list_saved_tensors(step))
    for (const std::string& name : tensor.names)
      list.names.push_back({name, tensor.dims, tensor.type, tensor.names.back() + ":1",
                            step.model.groups[static_cast<std::size_t>(tensor.group)].layers});
  return list;
}

}  // namespace

Result<ModelStep> build_step_program(const StepSpec& step, const StepTextOptions& options) {
  Result<std::string> text = write_step(step, options);
  if (!text.ok()) return text.error();
  Result<Program> program = hlo::read_hlo_text(
      std::make_shared<const std::string>(std::move(text).value()), step.model.name);
  if (!program.ok()) return program.error();  // ours: what is written here has to be readable
  return ModelStep{step, std::move(program).value(), list_names(step)};
}

}  // namespace spillway
