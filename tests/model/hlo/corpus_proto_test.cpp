// Every program of the corpus, read from its text and from its proto: the same program, with the
// same memory, work and traffic. Runs only where the corpus lies beside the repository.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>

#include "model/cost/program_flops.h"
#include "model/hlo/read_program.h"
#include "model/memory/compare_xla.h"
#include "model/memory/memory_report.h"
#include "tests/support/csv_rows.h"
#include "tests/support/describe_program.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

Program read(const fs::path& folder, const std::string& ending) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.path().string().ends_with(ending)) continue;
    Result<Program> program = read_program(entry.path().string());
    REQUIRE_MESSAGE(program.ok(), (program.ok() ? "" : to_text(program.error())));
    return std::move(program).value();
  }
  FAIL("no " << ending << " in " << folder.string());
  return {};
}

std::vector<std::int64_t> numbers_of(const Program& program, const MemoryAssignment& memory) {
  const MemoryTotals t = sum_totals(memory);
  const HostTraffic traffic = sum_traffic(program);
  std::vector<std::int64_t> numbers;
  for (const Bytes bytes : {t.argument, t.output, t.alias, t.temp, t.total_device, t.host_argument,
                            t.host_output, t.host_alias, t.host_temp, t.no_fragmentation,
                            traffic.device_to_host, traffic.host_to_device})
    numbers.push_back(bytes.value());
  return numbers;
}

TEST_CASE("text and proto of the corpus") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  int programs = 0;
  std::set<std::string> families;  // every instruction of the first program of each is compared
  for (const testing::CsvRow& row : testing::read_csv(*corpus / "corpus.csv")) {
    const std::string& id = row.at("id");
    if (row.at("status") != "ok" || !fs::exists(*corpus / id)) continue;
    CAPTURE(id);
    const Program text = read(*corpus / id, "after_optimizations.txt.gz");
    const Program proto = read(*corpus / id, "after_optimizations.hlo.pb.gz");
    ++programs;
    if (families.insert(id.substr(0, id.find('_', id.starts_with("v0_") ? 5 : 0))).second) {
      const std::set<std::string_view> not_read = {"sharding", "origin"};
      CHECK(testing::first_difference(testing::describe(text, not_read),
                                      testing::describe(proto, not_read)) == "");
    }
    CHECK(proto.instruction_count() == text.instruction_count());
    CHECK(proto.computations.size() == text.computations.size());
    CHECK(proto.device_count() == text.device_count());
    CHECK(proto.has_explicit_elements == text.has_explicit_elements);
    CHECK(proto.aliases.size() == text.aliases.size());
    const ProgramFlops a = count_flops(text), b = count_flops(proto);
    CHECK(a.dot_per_step == b.dot_per_step);
    CHECK(a.all_per_step == b.all_per_step);
    const Result<Schedule> text_order = text_schedule(text), proto_order = text_schedule(proto);
    REQUIRE(text_order.ok());
    REQUIRE(proto_order.ok());
    const MemoryAssignment memory = assign_memory(proto, *proto_order);
    CHECK(numbers_of(proto, memory) == numbers_of(text, assign_memory(text, *text_order)));
    REQUIRE(proto.xla_assignment != nullptr);
    const auto difference = compare_with_xla(memory, *proto.xla_assignment);
    CHECK((difference ? difference->first : "") == "");
  }
  CHECK(programs > 0);
  MESSAGE(programs << " programs: text and proto agree");
}

}  // namespace
}  // namespace spillway
