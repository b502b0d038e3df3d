// Every program of the corpus is read, whole, and passes validation. Runs only where the corpus
// lies beside the repository.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "model/hlo/read_program.h"
#include "tests/support/csv_rows.h"

namespace spillway {
namespace {

/// get-tuple-element instructions of the text, which are folded into operands here.
std::size_t explicit_elements(const std::string& text) {
  constexpr std::string_view kCall = " get-tuple-element(";
  std::size_t count = 0;
  for (std::size_t at = text.find(kCall); at != std::string::npos; at = text.find(kCall, at + 1))
    ++count;
  return count;
}

TEST_CASE("every program of the corpus") {
  const auto corpus = testing::shared_folder("corpus");
  if (!corpus) return;
  int programs = 0;
  int with_elements = 0;
  for (const testing::CsvRow& row : testing::read_csv(*corpus / "corpus.csv")) {
    const std::string& id = row.at("id");
    if (row.at("status") != "ok" || !std::filesystem::exists(*corpus / id)) continue;
    CAPTURE(id);
    const Result<Program> program = read_program((*corpus / id).string());
    REQUIRE_MESSAGE(program.ok(), (program.ok() ? "" : to_text(program.error())));
    // XLA before July 2026 printed get-tuple-element as instructions of their own.
    const std::size_t elements = explicit_elements(*program->text);
    CHECK((elements > 0) == program->has_explicit_elements);
    CHECK(std::to_string(program->instruction_count() + elements) == row.at("n_instr_total"));
    CHECK(std::to_string(program->computations.size()) == row.at("n_computations"));
    CHECK(std::to_string(program->device_count()) == row.at("n_devices"));
    CHECK(program->is_scheduled);
    for (const auto& computation : program->computations)
      CHECK(std::ranges::none_of(computation->parts().instructions, [](const Instruction& in) {
        return in.opcode == Opcode::kUnknown;
      }));
    ++programs;
    with_elements += program->has_explicit_elements ? 1 : 0;
  }
  CHECK(programs > 0);
  MESSAGE(programs << " programs read, " << with_elements << " with get-tuple-element");
}

}  // namespace
}  // namespace spillway
