#include "model/hlo/text_reader.h"

#include "model/hlo/computation_reader.h"
#include "model/hlo/cursor.h"
#include "model/hlo/module_header.h"
#include "model/hlo/other_formats.h"
#include "model/program/call_graph.h"

namespace spillway::hlo {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Everything that is called is there, once, and nothing calls itself.
void check_calls(const Program& program, const ComputationTable& table, Cursor& cursor) {
  if (!table.called_first()) return;
  if (const auto circle = find_call_cycle(program))
    cursor.fail_at(table.mention_of(*circle),
                   "computation " + quoted(program[*circle].name()) + " calls itself");
}

void finish(Program& program, ComputationReader& reader, const ModuleHeader& header,
            Cursor& cursor) {
  ComputationTable& table = reader.computations();
  if (const auto missing = table.first_undefined())
    return cursor.fail_at(*missing,
                          "computation " + quoted(*missing) + " is called but not defined",
                          "the file may be cut");
  if (!reader.entry())
    return cursor.fail_here("the module has no ENTRY computation", "the file may be cut");
  program.entry = *reader.entry();
  program.has_explicit_elements = reader.has_explicit_elements();
  program.computations = table.take();
  check_calls(program, table, cursor);
  if (cursor.failed()) return;
  program.aliases = resolve_aliases(header.aliases, program.entry_computation(), cursor);
  program.donors = resolve_donors(header.donors, program.entry_computation(), cursor);
}

}  // namespace

Result<Program> read_hlo_text(std::shared_ptr<const std::string> text, const std::string& path) {
  if (auto other = explain_other_format(*text, path)) return *std::move(other);
  Cursor cursor(*text, path);
  if (text->starts_with(kByteOrderMark)) cursor.skip(kByteOrderMark.size());
  const ModuleHeader header = read_module_header(cursor);
  Program program;
  program.name = header.name;
  program.path = path;
  program.text = text;
  program.is_scheduled = header.is_scheduled;
  program.num_partitions = header.num_partitions;
  program.replica_count = header.replica_count;
  program.stack_frames = read_stack_frames(cursor);
  ComputationReader reader(std::move(text), cursor);
  while (!cursor.failed() && !cursor.at_end()) reader.read();
  if (!cursor.failed()) finish(program, reader, header, cursor);
  if (cursor.failed()) return cursor.error();
  return program;
}

}  // namespace spillway::hlo
