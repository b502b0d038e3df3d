#include "model/program/program.h"

#include <charconv>
#include <functional>
#include <limits>

namespace spillway {

std::size_t Program::instruction_count() const {
  std::size_t count = 0;
  for (const auto& computation : computations) count += computation->size();
  return count;
}

Error error_at(const Program& program, std::string_view piece, std::string text,
               std::string advice) {
  const std::less<const char*> before;  // a total order of pointers into different strings, too
  if (program.text != nullptr) {
    const char* const start = program.text->data();
    if (!before(piece.data(), start) && !before(start + program.text->size(), piece.data()))
      return error_in_text(program.path, *program.text,
                           static_cast<std::size_t>(piece.data() - start), std::move(text),
                           std::move(advice));
  }
  return Error{ErrorKind::kInput, std::move(text), {program.path, {}, {}}, "", std::move(advice)};
}

std::optional<std::int64_t> known_trip_count(const Computation& computation,
                                             InstructionIndex loop) {
  const std::string_view config = computation.attribute(loop, "backend_config").value_or("");
  const std::size_t key = config.find("known_trip_count");
  if (key == std::string_view::npos) return std::nullopt;
  // {"n":"25"}, also with its quotes escaped; a sign or a list is no count.
  constexpr std::string_view kName = "known_trip_count";
  const std::size_t digit = config.find_first_not_of("\"\\:{n ", key + kName.size());
  if (digit == std::string_view::npos || config[digit] < '0' || config[digit] > '9')
    return std::nullopt;
  std::int64_t count = 0;
  const auto [end, error] =
      std::from_chars(config.data() + digit, config.data() + config.size(), count);
  if (error == std::errc::result_out_of_range) return std::numeric_limits<std::int64_t>::max();
  return count;
}

std::string source_line(const Program& program, InstructionId id) {
  const Computation& computation = program[id.computation];
  if (const auto file = metadata_field(computation, id.instruction, "source_file"); !file.empty()) {
    const auto line = metadata_field(computation, id.instruction, "source_line");
    return std::string(file) + ":" + std::string(line);
  }
  if (program.stack_frames == nullptr) return {};
  const auto numbers =
      parse_integers(metadata_field(computation, id.instruction, "stack_frame_id"));
  const StackFrames& tables = *program.stack_frames;
  if (numbers.empty() || numbers[0] < 1) return {};
  const auto frame = static_cast<std::size_t>(numbers[0]) - 1;
  if (frame >= tables.frames.size()) return {};
  const std::uint32_t location_id = tables.frames[frame].location;
  if (location_id < 1 || location_id > tables.locations.size()) return {};
  const StackFrames::Location& location = tables.locations[location_id - 1];
  if (location.file < 1 || location.file > tables.files.size()) return {};
  return std::string(tables.files[location.file - 1]) + ":" + std::to_string(location.line);
}

bool is_remat_clone(const Instruction& instruction) {
  // Not ".rematerialized": so XLA names the fills that it makes again beside each user.
  constexpr std::string_view kSuffix = ".remat";
  const std::size_t at = instruction.name.find(kSuffix);
  return at != std::string_view::npos &&
         !instruction.name.substr(at + kSuffix.size()).starts_with("erialized");
}

bool is_free(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kAddDependency:
    case Opcode::kAfterAll:
    case Opcode::kBitcast:
    case Opcode::kConstant:
    case Opcode::kDomain:
    case Opcode::kGetTupleElement:
    case Opcode::kOptimizationBarrier:
    case Opcode::kParameter:
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
    case Opcode::kTuple:
      return true;
    default:
      return false;
  }
}

}  // namespace spillway
