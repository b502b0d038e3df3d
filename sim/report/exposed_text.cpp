#include "sim/report/exposed_text.h"

#include <fmt/format.h>

#include "model/base/format.h"
#include "sim/report/table.h"

namespace spillway {

std::string_view kind_of(const ExposedWait& wait) {
  if (wait.direction == TransferDirection::kDeviceToHost) return "offload";
  if (wait.direction == TransferDirection::kHostToDevice) return "reload";
  if (wait.reason == StallReason::kSynchronous) return "synchronous collective";
  return wait.collective ? "collective" : "slice";
}

std::string unknown_text(const SimResult& run) {
  std::string text;
  for (const std::string& call : run.unknown)
    text += "Unknown cost, a lower bound was taken: " + call + "\n";
  return text;
}

std::string exposed_text(const Program& program, const SimResult& run, std::size_t rows) {
  if (run.exposed.empty())
    return "Nothing is exposed: every copy and every collective hides behind kernels.\n";
  TextTable table({"Exposed", ">of a step", ">it takes", "kind", "cause", ""});
  for (std::size_t k = 0; k < std::min(rows, run.exposed.size()); ++k) {
    const ExposedWait& wait = run.exposed[k];
    table.add({std::string(program[wait.start].name), format_seconds(wait.exposed),
               format_seconds(wait.duration), std::string(kind_of(wait)),
               std::string(cause_of(wait)), wait.explanation});
  }
  std::string text = table.text(0);
  if (run.exposed.size() > rows) text += fmt::format("… {} more\n", run.exposed.size() - rows);
  return text;
}

}  // namespace spillway
