// The stream of each async start against the thunk sequences that four versions of jaxlib wrote.
// Runs only where the corpus lies beside the repository.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "model/base/read_file.h"
#include "model/hlo/read_program.h"
#include "model/memory/assignment.h"
#include "sim/lowering/device_streams.h"
#include "tests/support/csv_rows.h"
#include "tests/support/toy_program.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

/// The streams of the starts, in the order in which XLA runs them:
///   "022: kAsyncStart [prev=019 (1) | next=027 (4)] stream=communication_stream[0], async_id=22"
std::vector<std::string> streams_of_thunks(const fs::path& folder) {
  std::vector<std::string> streams;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().string().find("thunk_sequence") == std::string::npos) continue;
    const auto content = read_file(entry.path().string());
    REQUIRE(content.ok());
    const std::string& text = **content;
    const std::string mark = " stream=";
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
      at += mark.size();
      streams.push_back(text.substr(at, text.find(',', at) - at));
    }
  }
  return streams;
}

std::vector<std::string> streams_of_ours(const Program& program, CopyStreams copies) {
  const Schedule schedule = testing::toy_schedule(program);
  const StreamAssignment assigned = assign_streams(program, copies);
  std::vector<std::string> streams;
  for (const InstructionId id : assign_memory(program, schedule).schedule.order)
    if (!assigned[id.computation].empty())
      if (const auto& stream = assigned[id.computation][id.instruction.index];
          stream && stream->pool != StreamPool::kMain)
        streams.push_back(to_string(*stream));
  return streams;
}

TEST_CASE("streams of each version of jaxlib are those of its thunks") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  struct Row {
    const char* version;
    CopyStreams rule;
  };
  const Row rows[] = {{"0_10_2", CopyStreams::kRoundRobin},
                      {"0_11_2", CopyStreams::kRoundRobin},
                      {"0_12_0_1", CopyStreams::kDedicated}};
  for (const Row& row : rows)
    for (const char* kind : {"scan_off", "scan_save", "unroll_off", "unroll_save"}) {
      const fs::path folder = *corpus / (std::string("v") + row.version + "_" + kind);
      CAPTURE(folder.string());
      const Result<Program> program = read_program(folder.string());
      REQUIRE(program.ok());
      const auto truth = streams_of_thunks(folder);
      CHECK(truth.size() > 10);
      CHECK(streams_of_ours(*program, row.rule) == truth);
      const bool offloads = std::string(kind).ends_with("off");
      CHECK(find_copy_streams({}, *program).has_value() == offloads);
      if (offloads) CHECK(find_copy_streams({}, *program) == row.rule);
    }
}

}  // namespace
}  // namespace spillway
