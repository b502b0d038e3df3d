#include "tests/support/schedule_dump.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "model/base/read_file.h"
#include "model/hlo/proto_reader.h"

namespace spillway::testing {
namespace {

/// The messages of HloModuleProto, as far as fields of them are encoded.
enum class Message : std::uint8_t {
  kNone,  ///< left out, with everything in it
  kModule,
  kComputation,
  kInstruction,
  kShape,
  kLayout,
  kTile,
  kLiteral,
  kMetadata,
  kSlice,
  kDot,
  kPrecision,
  kWindow,
  kWindowDimension,
  kPadding,
  kPaddingDimension,
  kGather,
  kScatter,
  kGroup,
  kIota,
  kMeshGroups,
  kMesh,
  kMeshAxis,
  kAxis,
  kSubAxis,
  kAliasing,
  kFrontend,
  kKeyValue,
  kSchedule,
  kScheduled,
  kSequence,
  kAliases,
  kAlias,
  kDonors,
  kDonor,
  kDevices,
};

enum class Kind : std::uint8_t { kNumber, kText, kFloat, kMessage };

struct Field {
  Message in;
  std::string_view name;
  std::uint32_t number;
  Kind kind;
  Message message = Message::kNone;
};

using M = Message;
using K = Kind;
/// Names of XLA's text, numbers of its wire.
constexpr Field kFields[] = {
    {M::kModule, "name", 1, K::kText},
    {M::kModule, "computations", 3, K::kMessage, M::kComputation},
    {M::kModule, "entry_computation_id", 6, K::kNumber},
    {M::kModule, "schedule", 7, K::kMessage, M::kSchedule},
    {M::kModule, "input_output_alias", 8, K::kMessage, M::kAliases},
    {M::kModule, "device_assignment", 15, K::kMessage, M::kDevices},
    {M::kModule, "buffer_donor", 18, K::kMessage, M::kDonors},
    {M::kComputation, "name", 1, K::kText},
    {M::kComputation, "instructions", 2, K::kMessage, M::kInstruction},
    {M::kComputation, "id", 5, K::kNumber},
    {M::kComputation, "root_id", 6, K::kNumber},
    {M::kComputation, "is_fusion_computation", 7, K::kNumber},
    {M::kInstruction, "name", 1, K::kText},
    {M::kInstruction, "opcode", 2, K::kText},
    {M::kInstruction, "shape", 3, K::kMessage, M::kShape},
    {M::kInstruction, "metadata", 7, K::kMessage, M::kMetadata},
    {M::kInstruction, "literal", 8, K::kMessage, M::kLiteral},
    {M::kInstruction, "parameter_number", 9, K::kNumber},
    {M::kInstruction, "fusion_kind", 11, K::kText},
    {M::kInstruction, "tuple_index", 13, K::kNumber},
    {M::kInstruction, "dimensions", 14, K::kNumber},
    {M::kInstruction, "window", 15, K::kMessage, M::kWindow},
    {M::kInstruction, "slice_dimensions", 17, K::kMessage, M::kSlice},
    {M::kInstruction, "dynamic_slice_sizes", 20, K::kNumber},
    {M::kInstruction, "padding_config", 21, K::kMessage, M::kPadding},
    {M::kInstruction, "channel_id", 26, K::kNumber},
    {M::kInstruction, "custom_call_target", 28, K::kText},
    {M::kInstruction, "dot_dimension_numbers", 30, K::kMessage, M::kDot},
    {M::kInstruction, "gather_dimension_numbers", 33, K::kMessage, M::kGather},
    {M::kInstruction, "gather_slice_sizes", 34, K::kNumber},
    {M::kInstruction, "id", 35, K::kNumber},
    {M::kInstruction, "operand_ids", 36, K::kNumber},
    {M::kInstruction, "control_predecessor_ids", 37, K::kNumber},
    {M::kInstruction, "called_computation_ids", 38, K::kNumber},
    {M::kInstruction, "backend_config", 43, K::kText},
    {M::kInstruction, "scatter_dimension_numbers", 48, K::kMessage, M::kScatter},
    {M::kInstruction, "replica_groups", 49, K::kMessage, M::kGroup},
    {M::kInstruction, "feature_group_count", 50, K::kNumber},
    {M::kInstruction, "precision_config", 51, K::kMessage, M::kPrecision},
    {M::kInstruction, "constrain_layout", 56, K::kNumber},
    {M::kInstruction, "operand_shapes_with_layout", 57, K::kMessage, M::kShape},
    {M::kInstruction, "batch_group_count", 58, K::kNumber},
    {M::kInstruction, "is_stable", 60, K::kNumber},
    {M::kInstruction, "comparison_direction", 63, K::kText},
    {M::kInstruction, "custom_call_has_side_effect", 65, K::kNumber},
    {M::kInstruction, "frontend_attributes", 68, K::kMessage, M::kFrontend},
    {M::kInstruction, "use_global_device_ids", 71, K::kNumber},
    {M::kInstruction, "output_operand_aliasing", 74, K::kMessage, M::kAliasing},
    {M::kInstruction, "async_execution_thread", 79, K::kText},
    {M::kInstruction, "iota_collective_device_list", 92, K::kMessage, M::kIota},
    {M::kInstruction, "mesh_axes_replica_group_list", 93, K::kMessage, M::kMeshGroups},
    {M::kInstruction, "comparison_order", 102, K::kText},
    {M::kShape, "element_type", 2, K::kNumber},
    {M::kShape, "dimensions", 3, K::kNumber},
    {M::kShape, "tuple_shapes", 4, K::kMessage, M::kShape},
    {M::kShape, "layout", 5, K::kMessage, M::kLayout},
    {M::kLayout, "minor_to_major", 1, K::kNumber},
    {M::kLayout, "tiles", 6, K::kMessage, M::kTile},
    {M::kLayout, "element_size_in_bits", 7, K::kNumber},
    {M::kLayout, "memory_space", 8, K::kNumber},
    {M::kTile, "dimensions", 1, K::kNumber},
    {M::kLiteral, "preds", 2, K::kNumber},
    {M::kLiteral, "u8s", 3, K::kText},
    {M::kLiteral, "s32s", 4, K::kNumber},
    {M::kLiteral, "s64s", 5, K::kNumber},
    {M::kLiteral, "u32s", 6, K::kNumber},
    {M::kLiteral, "u64s", 7, K::kNumber},
    {M::kLiteral, "f32s", 8, K::kFloat},
    {M::kLiteral, "f16s", 11, K::kText},
    {M::kLiteral, "c64s", 12, K::kFloat},
    {M::kLiteral, "bf16s", 13, K::kText},
    {M::kLiteral, "s8s", 15, K::kText},
    {M::kMetadata, "op_name", 2, K::kText},
    {M::kMetadata, "scheduling_name", 16, K::kText},
    {M::kSlice, "start", 1, K::kNumber},
    {M::kSlice, "limit", 2, K::kNumber},
    {M::kSlice, "stride", 3, K::kNumber},
    {M::kDot, "lhs_contracting_dimensions", 1, K::kNumber},
    {M::kDot, "rhs_contracting_dimensions", 2, K::kNumber},
    {M::kDot, "lhs_batch_dimensions", 3, K::kNumber},
    {M::kDot, "rhs_batch_dimensions", 4, K::kNumber},
    {M::kPrecision, "operand_precision", 1, K::kNumber},
    {M::kWindow, "dimensions", 1, K::kMessage, M::kWindowDimension},
    {M::kWindowDimension, "size", 1, K::kNumber},
    {M::kWindowDimension, "stride", 2, K::kNumber},
    {M::kWindowDimension, "padding_low", 3, K::kNumber},
    {M::kWindowDimension, "padding_high", 4, K::kNumber},
    {M::kWindowDimension, "window_dilation", 5, K::kNumber},
    {M::kWindowDimension, "base_dilation", 6, K::kNumber},
    {M::kPadding, "dimensions", 1, K::kMessage, M::kPaddingDimension},
    {M::kPaddingDimension, "edge_padding_low", 1, K::kNumber},
    {M::kPaddingDimension, "edge_padding_high", 2, K::kNumber},
    {M::kPaddingDimension, "interior_padding", 3, K::kNumber},
    {M::kGather, "offset_dims", 1, K::kNumber},
    {M::kGather, "collapsed_slice_dims", 2, K::kNumber},
    {M::kGather, "start_index_map", 3, K::kNumber},
    {M::kGather, "index_vector_dim", 4, K::kNumber},
    {M::kGather, "operand_batching_dims", 5, K::kNumber},
    {M::kGather, "start_indices_batching_dims", 6, K::kNumber},
    {M::kScatter, "update_window_dims", 1, K::kNumber},
    {M::kScatter, "inserted_window_dims", 2, K::kNumber},
    {M::kScatter, "scatter_dims_to_operand_dims", 3, K::kNumber},
    {M::kScatter, "index_vector_dim", 4, K::kNumber},
    {M::kGroup, "replica_ids", 1, K::kNumber},
    {M::kIota, "num_replica_groups", 1, K::kNumber},
    {M::kIota, "num_devices_per_group", 2, K::kNumber},
    {M::kIota, "iota_reshape_dims", 3, K::kNumber},
    {M::kIota, "iota_transpose_perm", 4, K::kNumber},
    {M::kMeshGroups, "mesh", 1, K::kMessage, M::kMesh},
    {M::kMeshGroups, "axes", 2, K::kMessage, M::kAxis},
    {M::kMesh, "axes", 1, K::kMessage, M::kMeshAxis},
    {M::kMesh, "device_ids", 2, K::kNumber},
    {M::kMeshAxis, "name", 1, K::kText},
    {M::kMeshAxis, "size", 2, K::kNumber},
    {M::kAxis, "mesh_axis_index", 1, K::kNumber},
    {M::kAxis, "sub_axis_info", 2, K::kMessage, M::kSubAxis},
    {M::kSubAxis, "pre_size", 1, K::kNumber},
    {M::kSubAxis, "size", 2, K::kNumber},
    {M::kAliasing, "output_shape_index", 1, K::kNumber},
    {M::kAliasing, "operand_index", 2, K::kNumber},
    {M::kAliasing, "operand_shape_index", 3, K::kNumber},
    {M::kFrontend, "map", 1, K::kMessage, M::kKeyValue},
    {M::kKeyValue, "key", 1, K::kText},
    {M::kKeyValue, "value", 2, K::kText},
    {M::kSchedule, "sequences", 1, K::kMessage, M::kScheduled},
    {M::kScheduled, "key", 1, K::kNumber},
    {M::kScheduled, "value", 2, K::kMessage, M::kSequence},
    {M::kSequence, "instruction_ids", 1, K::kNumber},
    {M::kAliases, "entries", 1, K::kMessage, M::kAlias},
    {M::kAlias, "output_shape_index", 1, K::kNumber},
    {M::kAlias, "parameter_number", 2, K::kNumber},
    {M::kAlias, "parameter_shape_index", 3, K::kNumber},
    {M::kAlias, "kind", 4, K::kNumber},
    {M::kDonors, "entries", 1, K::kMessage, M::kDonor},
    {M::kDonor, "parameter_number", 1, K::kNumber},
    {M::kDonor, "parameter_shape_index", 2, K::kNumber},
    {M::kDevices, "replica_count", 1, K::kNumber},
    {M::kDevices, "computation_count", 2, K::kNumber},
};

struct NamedNumber {
  std::string_view name;
  std::int64_t number;
};
/// Enumerators that stand in the text by name.
constexpr NamedNumber kEnumerators[] = {
    {"false", 0},     {"true", 1},       {"PRED", 1},    {"S8", 2},      {"S16", 3},
    {"S32", 4},       {"S64", 5},        {"U8", 6},      {"U16", 7},     {"U32", 8},
    {"U64", 9},       {"F16", 10},       {"F32", 11},    {"F64", 12},    {"TUPLE", 13},
    {"C64", 15},      {"BF16", 16},      {"TOKEN", 17},  {"F8E5M2", 19}, {"F8E4M3FN", 20},
    {"MAY_ALIAS", 1}, {"MUST_ALIAS", 2}, {"DEFAULT", 0}, {"HIGH", 1},    {"HIGHEST", 2},
};

const Field* find_field(Message in, std::string_view name) {
  static const auto table = [] {
    std::map<std::pair<Message, std::string_view>, const Field*> rows;
    for (const Field& field : kFields) rows[{field.in, field.name}] = &field;
    return rows;
  }();
  const auto found = table.find({in, name});
  return found == table.end() ? nullptr : found->second;
}

/// One line of the text: `name {`, `name: value` or `}`.
struct Line {
  std::string_view name;
  std::string_view value;  ///< empty where a message begins or ends
};

class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::optional<Line> next() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      if (line.empty()) continue;
      if (line == "}") return Line{line, ""};
      const std::size_t stop = line.find_first_of(": ");
      const std::string_view name = line.substr(0, stop);
      if (line.ends_with('{')) return Line{name, ""};
      return Line{name, line.substr(std::min(stop + 2, line.size()))};
    }
    return std::nullopt;
  }

  void skip_message() {
    for (int depth = 1; depth > 0;) {
      const auto line = next();
      if (!line) return;
      if (line->name == "}")
        --depth;
      else if (line->value.empty())
        ++depth;
    }
  }

 private:
  std::string_view rest_;
};

std::string unquote(std::string_view text) {
  std::string plain;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != '\\') {
      plain += text[i];
      continue;
    }
    const char c = text[++i];
    if (c >= '0' && c <= '7') {
      int code = 0;
      for (int digit = 0; digit < 3 && text[i] >= '0' && text[i] <= '7'; ++digit)
        code = code * 8 + (text[i++] - '0');
      --i;
      plain += static_cast<char>(code);
    } else {
      plain += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
  }
  return plain;
}

std::int64_t number_of(std::string_view text) {
  for (const NamedNumber& row : kEnumerators)
    if (row.name == text) return row.number;
  std::int64_t number = 0;
  std::uint64_t large = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number).ptr == end) return number;
  if (std::from_chars(text.data(), end, large).ptr == end) return static_cast<std::int64_t>(large);
  return 0;  // an enumerator that no test asks for
}

/// Writes the wire format of what it reads.
class Encoder {
 public:
  explicit Encoder(Lines& lines) : lines_(lines) {}

  /// Up to the end of the message.
  std::string encode(Message message) {
    std::string wire;
    while (const auto line = lines_.next()) {
      if (line->name == "}") break;
      const Field* const field = find_field(message, line->name);
      const bool is_message = line->value.empty();
      if (is_message && (field == nullptr || field->kind != Kind::kMessage)) {
        lines_.skip_message();
        continue;
      }
      if (field != nullptr) add(wire, *field, line->value);
    }
    return wire;
  }

 private:
  void add(std::string& wire, const Field& field, std::string_view value) {
    switch (field.kind) {
      case Kind::kNumber:
        add_varint(wire, field.number << 3);
        return add_varint(wire, static_cast<std::uint64_t>(number_of(value)));
      case Kind::kFloat: {
        add_varint(wire, field.number << 3 | 5);
        const auto bits =
            std::bit_cast<std::uint32_t>(std::strtof(std::string(value).c_str(), nullptr));
        for (int byte = 0; byte < 4; ++byte) wire += static_cast<char>(bits >> (8 * byte));
        return;
      }
      case Kind::kText:
        return add_bytes(wire, field.number, unquote(value));
      case Kind::kMessage:
        return add_bytes(wire, field.number, encode(field.message));
    }
  }

  static void add_bytes(std::string& wire, std::uint32_t number, const std::string& bytes) {
    add_varint(wire, number << 3 | 2);
    add_varint(wire, bytes.size());
    wire += bytes;
  }

  static void add_varint(std::string& wire, std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) wire += static_cast<char>(number | 0x80);
    wire += static_cast<char>(number);
  }

  Lines& lines_;
};

/// What the text says of a module's instructions and computations by their ids.
class ModuleIds {
 public:
  struct Instruction {
    std::string name;
    bool is_element = false;   ///< a get-tuple-element
    std::int64_t operand = 0;  ///< of an element
    std::uint32_t index = 0;
  };

  explicit ModuleIds(std::string_view text) {
    Lines lines(text);
    lines.next();  // hlo_module {
    while (const auto line = lines.next()) {
      if (line->name == "}") return;
      if (!line->value.empty()) continue;
      if (line->name == "computations")
        read_computation(lines);
      else if (line->name == "schedule")
        read_schedule(lines);
      else
        lines.skip_message();
    }
  }

  const std::string& computation(std::int64_t id) const { return computations_.at(id); }
  const Instruction& instruction(std::int64_t id) const { return instructions_.at(id); }
  /// Ids of computations, and of their instructions in the order given.
  const std::map<std::int64_t, std::vector<std::int64_t>>& sequences() const { return sequences_; }

 private:
  void read_computation(Lines& lines) {
    std::string name;
    while (const auto line = lines.next()) {
      if (line->name == "}") return;
      if (line->name == "name") name = unquote(line->value);
      if (line->name == "id") computations_[number_of(line->value)] = name;
      if (!line->value.empty()) continue;
      if (line->name == "instructions")
        read_instruction(lines);
      else
        lines.skip_message();
    }
  }

  void read_instruction(Lines& lines) {
    Instruction in;
    std::int64_t id = 0;
    while (const auto line = lines.next()) {
      if (line->name == "}") break;
      if (line->name == "name") in.name = unquote(line->value);
      if (line->name == "opcode") in.is_element = line->value == "\"get-tuple-element\"";
      if (line->name == "operand_ids") in.operand = number_of(line->value);
      if (line->name == "tuple_index")
        in.index = static_cast<std::uint32_t>(number_of(line->value));
      if (line->name == "id") id = number_of(line->value);
      if (line->value.empty()) lines.skip_message();
    }
    instructions_[id] = std::move(in);
  }

  /// sequences { key: 1 value { instruction_ids: 2 } }
  void read_schedule(Lines& lines) {
    std::int64_t computation = 0;
    for (int depth = 1; depth > 0;) {
      const auto line = lines.next();
      if (!line) return;
      if (line->name == "}")
        --depth;
      else if (line->value.empty())
        ++depth;
      if (line->name == "key") computation = number_of(line->value);
      if (line->name == "instruction_ids")
        sequences_[computation].push_back(number_of(line->value));
    }
  }

  std::unordered_map<std::int64_t, std::string> computations_;
  std::unordered_map<std::int64_t, Instruction> instructions_;
  std::map<std::int64_t, std::vector<std::int64_t>> sequences_;
};

/// The instructions of a computation by name.
using ByName = std::unordered_map<std::string_view, InstructionIndex>;

ComputationId find_computation(const Program& program, const std::string& name) {
  for (const ComputationId id : ids(program.computations))
    if (program[id].name() == name) return id;
  FAIL("no computation " << name);
  return {};
}

ByName names_of(const Computation& computation) {
  ByName by_name;
  for (const InstructionIndex i : computation.instructions()) by_name[computation[i].name] = i;
  return by_name;
}

/// What an id stands for: an instruction, or an element of one.
Operand place_of(const ModuleIds& module, const Computation& computation, const ByName& by_name,
                 std::int64_t id) {
  const ModuleIds::Instruction& in = module.instruction(id);
  if (!in.is_element) return {by_name.at(in.name), 0};
  Operand place = place_of(module, computation, by_name, in.operand);
  place.node += computation.shape_of(place).element_node(in.index);
  return place;
}

IdVector<ComputationId, std::vector<Operand>> given_order(const Program& program,
                                                          const ModuleIds& module) {
  IdVector<ComputationId, std::vector<Operand>> given(program.computations.size());
  for (const auto& [id, sequence] : module.sequences()) {
    const ComputationId computation = find_computation(program, module.computation(id));
    const ByName by_name = names_of(program[computation]);
    for (const std::int64_t in : sequence)
      given[computation].push_back(place_of(module, program[computation], by_name, in));
  }
  return given;
}

ScheduleDump::Row read_row(Lines& lines, const ModuleIds& module, const ByName& by_name,
                           bool& is_element) {
  std::map<std::string_view, std::string_view> values;
  while (const auto line = lines.next()) {
    if (line->name == "}") break;
    values[line->name] = line->value;
  }
  const ModuleIds::Instruction& in = module.instruction(number_of(values["id"]));
  is_element = in.is_element;
  const auto cycles = [&](const char* name) {
    return std::strtod(std::string(values[name]).c_str(), nullptr);
  };
  ScheduleDump::Row row;
  if (!is_element) row.instruction = by_name.at(in.name);
  row.start = cycles("start_timestamp_cycles");
  row.end = cycles("end_timestamp_cycles");
  row.memory_after = number_of(values["memory_usage_after"]);
  row.peak_after = number_of(values["peak_memory_after"]);
  return row;
}

ScheduleDump::Chosen read_chosen(Lines& lines, const Program& program, const ModuleIds& module) {
  ScheduleDump::Chosen chosen;
  ByName by_name;
  while (const auto line = lines.next()) {
    if (line->name == "}") break;
    if (line->name == "computation_id") {
      chosen.computation = find_computation(program, module.computation(number_of(line->value)));
      by_name = names_of(program[chosen.computation]);
    }
    if (!line->value.empty()) continue;
    if (line->name != "instructions") {
      lines.skip_message();
      continue;
    }
    bool is_element = false;
    const ScheduleDump::Row row = read_row(lines, module, by_name, is_element);
    if (!is_element) chosen.rows.push_back(row);
  }
  return chosen;
}

}  // namespace

ScheduleDump read_schedule_dump(const std::filesystem::path& path) {
  const auto content = read_file(path.string());
  if (!content.ok()) FAIL(to_text(content.error()));
  const std::string_view text = **content;
  Lines lines(text);
  ScheduleDump dump;
  const ModuleIds module(text);
  while (const auto line = lines.next()) {
    if (line->name == "hlo_module") {
      Encoder encoder(lines);
      Result<Program> program = hlo::read_hlo_proto(
          std::make_shared<const std::string>(encoder.encode(Message::kModule)), path.string());
      if (!program.ok()) FAIL(to_text(program.error()));
      dump.program = std::move(program).value();
      dump.given = given_order(dump.program, module);
    } else if (line->name == "computation_schedules") {
      dump.chosen.push_back(read_chosen(lines, dump.program, module));
    } else if (line->value.empty()) {
      lines.skip_message();
    }
  }
  return dump;
}

std::vector<std::filesystem::path> find_schedule_dumps(const std::filesystem::path& corpus) {
  std::vector<std::filesystem::path> found;
  for (const auto& program : std::filesystem::directory_iterator(corpus)) {
    if (!program.is_directory()) continue;
    for (const auto& file : std::filesystem::directory_iterator(program.path()))
      if (file.path().filename().string().find(".schedule.txt") != std::string::npos)
        found.push_back(file.path());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace spillway::testing
