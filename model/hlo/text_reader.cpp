#include "model/hlo/text_reader.h"

#include <algorithm>

#include "model/hlo/cursor.h"
#include "model/hlo/shape_reader.h"
#include "model/hlo/text_interner.h"
#include "model/program/call_graph.h"

namespace spillway::hlo {
namespace {

/// A computation that text has named: defined, or only called so far.
struct NamedComputation {
  ComputationId id;
  std::size_t first_mention = 0;
  bool defined = false;
};

class TextReader {
 public:
  TextReader(std::shared_ptr<const std::string> text, const std::string& path)
      : text_(std::move(text)), cursor_(*text_, path) {
    program_.path = path;
  }

  Result<Program> read() {
    explain_other_formats();
    read_header();
    read_tables();
    while (!cursor_.failed() && !cursor_.at_end()) read_computation();
    finish();
    if (cursor_.failed()) return cursor_.error();
    return std::move(program_);
  }

 private:
  void explain_other_formats();
  void read_header();
  void read_header_attribute(std::string_view name, std::string_view value);
  void read_aliases(std::string_view list);
  void read_tables();
  void read_table_line(std::string_view table, StackFrames& frames);
  void read_computation();
  void read_computation_header();
  void read_instruction();
  void read_operands(Instruction& instruction);
  void read_operand();
  void read_attributes(Instruction& instruction, std::size_t start);
  void read_calls(std::string_view name, std::string_view value);
  void define(std::string_view name, std::size_t at, Operand value);
  void define_tuple_element(const Instruction& instruction, std::size_t at);
  ShapeNodeIndex element(Operand of, std::int64_t index, std::size_t at);
  ComputationId mention(std::string_view name, std::size_t at);
  void check_parameters(std::size_t at);
  void finish();
  void resolve_aliases();

  std::shared_ptr<const std::string> text_;
  Cursor cursor_;
  Program program_;
  ShapeReader shapes_;
  TextTable<NamedComputation> computations_;
  std::vector<std::string_view> computation_names_;
  bool has_entry_ = false;
  /// Tuple paths of program_.aliases, until the entry's shapes are known.
  struct AliasPaths {
    std::vector<std::int64_t> output, parameter;
  };
  std::vector<AliasPaths> alias_paths_;

  // The computation being read.
  ComputationParts parts_;
  TextTable<Operand> values_;
  std::optional<Operand> root_;
  std::optional<Operand> last_;
};

void TextReader::explain_other_formats() {
  const std::string_view start = std::string_view(*text_).substr(0, 4096);
  const auto is_binary = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r';
  };
  if (std::ranges::any_of(start, is_binary)) {
    const bool proto = start.find("jit_") != std::string_view::npos ||
                       program_.path.find(".pb") != std::string::npos;
    return cursor_.fail(
        0, proto ? "is a binary HloProto; HLO text is read" : "is binary, not HLO text",
        "give the …after_optimizations.txt that --xla_dump_hlo_as_text writes");
  }
  const std::string_view whole(*text_);
  const bool mlir = start.find("module @") != std::string_view::npos ||
                    start.find("stablehlo.") != std::string_view::npos ||
                    start.find("func.func") != std::string_view::npos;
  if (mlir && whole.find("HloModule") == std::string_view::npos)
    cursor_.fail(
        0, "is StableHLO, which XLA has not compiled yet",
        "compile with XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" and give DIR");
}

void TextReader::read_header() {
  if (cursor_.failed()) return;
  if (!cursor_.accept_word("HloModule"))
    return cursor_.fail_here("expected 'HloModule'", "this does not look like HLO text");
  program_.name = std::string(cursor_.name("the name of the module"));
  while (!cursor_.failed() && cursor_.accept(',')) {
    const std::string_view name = cursor_.word();
    if (name.empty() || !cursor_.expect('=')) return cursor_.fail_here("expected name=value");
    read_header_attribute(name, cursor_.attribute_value());
  }
}

void TextReader::read_header_attribute(std::string_view name, std::string_view value) {
  if (name == "is_scheduled") {
    program_.is_scheduled = value == "true";
  } else if (name == "num_partitions" || name == "replica_count") {
    const auto numbers = parse_integers(value);
    if (numbers.empty() || numbers[0] < 1) return cursor_.fail_here("expected a count above 0");
    (name == "num_partitions" ? program_.num_partitions : program_.replica_count) = numbers[0];
  } else if (name == "input_output_alias") {
    read_aliases(value);
  }
}

/// { {0}: (0, {}, may-alias), {1,2}: (1, {}) }. The paths become nodes when the entry is known.
void TextReader::read_aliases(std::string_view list) {
  Cursor c(list, program_.path);
  c.expect('{');
  while (!c.failed() && !c.accept('}')) {
    c.accept(',');
    InputOutputAlias alias;
    const std::string_view output = c.balanced();
    c.expect(':');
    c.expect('(');
    const auto parameter = c.number();
    c.expect(',');
    const std::string_view parameter_path = c.balanced();
    if (c.accept(',')) alias.must = c.word() == "must-alias";
    c.expect(')');
    if (!parameter || *parameter < 0) return cursor_.fail_here("input_output_alias is damaged");
    alias.parameter = static_cast<std::uint32_t>(*parameter);
    alias_paths_.push_back({parse_integers(output), parse_integers(parameter_path)});
    program_.aliases.push_back(alias);
  }
  if (c.failed()) cursor_.fail_here("input_output_alias is damaged");
}

void TextReader::read_tables() {
  auto frames = std::make_shared<StackFrames>();
  bool any = false;
  for (const std::string_view table :
       {"FileNames", "FunctionNames", "FileLocations", "StackFrames"}) {
    if (!cursor_.accept_word(table)) continue;
    any = true;
    while (!cursor_.failed() && cursor_.number()) read_table_line(table, *frames);
  }
  if (any) program_.stack_frames = std::move(frames);
}

/// 1 "file.py" or 3 {file_name_id=1 function_name_id=2 line=61 …}, the number already taken.
void TextReader::read_table_line(std::string_view table, StackFrames& frames) {
  if (cursor_.peek() == '"') {
    const std::string_view quoted = cursor_.attribute_value();
    const std::string_view name = quoted.size() >= 2 ? quoted.substr(1, quoted.size() - 2) : quoted;
    (table == "FileNames" ? frames.files : frames.functions).push_back(name);
    return;
  }
  const std::string_view group = cursor_.balanced();
  const auto field = [group](std::string_view key) {
    const std::size_t at = group.find(key);
    const auto numbers = at == std::string_view::npos
                             ? std::vector<std::int64_t>{}
                             : parse_integers(group.substr(at + key.size(), 12));
    return numbers.empty() ? 0u : static_cast<std::uint32_t>(numbers[0]);
  };
  if (table == "FileLocations")
    frames.locations.push_back(
        {field("file_name_id="), field("function_name_id="), field(" line=")});
  else
    frames.frames.push_back({field("file_location_id="), field("parent_frame_id=")});
}

void TextReader::read_computation() {
  parts_ = ComputationParts{};
  values_.clear();
  root_.reset();
  last_.reset();

  const bool is_entry = cursor_.accept_word("ENTRY");
  const std::string_view name = cursor_.name("a computation");
  const std::size_t at = cursor_.position() - name.size();
  read_computation_header();
  while (!cursor_.failed() && !cursor_.accept('}')) read_instruction();
  if (cursor_.failed()) return;
  while (cursor_.accept(',')) {  // } , execution_thread="…"
    cursor_.word();
    if (cursor_.expect('=')) cursor_.attribute_value();
  }
  if (!last_)
    return cursor_.fail(at, "computation '" + std::string(name) + "' has no instructions");
  parts_.name = name;
  parts_.root = root_.value_or(*last_);
  parts_.storage = {text_, shapes_.pool()};
  check_parameters(at);
  if (cursor_.failed()) return;

  const ComputationId id = mention(name, at);
  NamedComputation& named = *computations_.find(name);
  if (named.defined)
    return cursor_.fail(at, "computation '" + std::string(name) + "' is defined twice");
  named.defined = true;
  program_.computations[id] = make_computation(std::move(parts_));
  if (!is_entry) return;
  if (has_entry_) return cursor_.fail(at, "there are two ENTRY computations");
  has_entry_ = true;
  program_.entry = id;
}

/// (p: f32[2]) -> f32[2] {   or just   {
void TextReader::read_computation_header() {
  if (cursor_.peek() == '(') {
    cursor_.balanced();
    if (cursor_.accept("->")) shapes_.read(cursor_);
  }
  while (cursor_.accept(',')) {
    cursor_.word();
    if (cursor_.expect('=')) cursor_.attribute_value();
  }
  if (!cursor_.accept('{')) cursor_.fail_here("expected '{' and the instructions of a computation");
}

void TextReader::read_instruction() {
  const bool is_root = cursor_.accept_word("ROOT");
  Instruction instruction;
  instruction.name = cursor_.name("an instruction");
  const std::size_t at = cursor_.position() - instruction.name.size();
  cursor_.expect('=');
  instruction.shape = shapes_.read(cursor_);
  instruction.opcode_text = cursor_.word();
  if (!cursor_.failed() && instruction.opcode_text.empty())
    cursor_.fail_here("expected an operation such as add(…)");
  instruction.opcode = find_opcode(instruction.opcode_text);
  instruction.first_operand = static_cast<std::uint32_t>(parts_.operands.size());
  instruction.first_called = static_cast<std::uint32_t>(parts_.called.size());
  instruction.first_attribute = static_cast<std::uint32_t>(parts_.attributes.size());
  read_operands(instruction);
  read_attributes(instruction, at);
  if (cursor_.failed()) return;

  if (instruction.opcode == Opcode::kGetTupleElement) {
    define_tuple_element(instruction, at);
  } else {
    const InstructionIndex self(parts_.instructions.size());
    parts_.instructions.push_back(instruction);
    define(instruction.name, at, Operand{self, 0});
  }
  if (is_root) root_ = last_;
}

void TextReader::read_operands(Instruction& instruction) {
  if (cursor_.failed()) return;
  if (instruction.opcode == Opcode::kParameter || instruction.opcode == Opcode::kConstant) {
    const std::string_view group = cursor_.peek() == '(' ? cursor_.balanced() : std::string_view();
    if (group.size() < 2) return cursor_.fail_here("expected '('");
    instruction.literal = group.substr(1, group.size() - 2);
    const bool number = !instruction.literal.empty() && instruction.literal[0] >= '0' &&
                        instruction.literal[0] <= '9';
    if (instruction.opcode == Opcode::kParameter && (!number || instruction.literal.size() > 6))
      cursor_.fail_here("expected the number of a parameter");
    return;
  }
  if (!cursor_.expect('(')) return;
  while (!cursor_.failed() && !cursor_.accept(')')) {
    if (parts_.operands.size() > instruction.first_operand && !cursor_.expect(',')) return;
    read_operand();
  }
  instruction.operand_count =
      static_cast<std::uint32_t>(parts_.operands.size()) - instruction.first_operand;
}

/// %x, %x#1#0, or with the shape in front as older XLA prints it.
void TextReader::read_operand() {
  const char first = cursor_.peek();
  if (first == '(') shapes_.read(cursor_);
  std::string_view name = cursor_.name("an operand");
  std::size_t at = cursor_.position() - name.size();
  if (first != '%' && first != '(' && cursor_.peek() == '[') {  // f32[2]{0} %x
    cursor_.move_to(at);
    shapes_.read(cursor_);
    name = cursor_.name("an operand");
    at = cursor_.position() - name.size();
  } else if (first == '(') {
    at = cursor_.position() - name.size();
  }
  if (cursor_.failed()) return;
  const Operand* known = values_.find(name);
  if (known == nullptr)
    return cursor_.fail(at, "'" + std::string(name) + "' is not defined before it is used");
  Operand operand = *known;
  while (cursor_.accept('#')) {
    const auto index = cursor_.number();
    if (!index) return cursor_.fail_here("expected the number of a tuple element");
    operand.node = element(operand, *index, at);
  }
  parts_.operands.push_back(operand);
}

void TextReader::read_attributes(Instruction& instruction, std::size_t start) {
  const bool ends_a_pair =
      is_async_done(instruction.opcode) || instruction.opcode == Opcode::kAsyncUpdate;
  while (!cursor_.failed() && cursor_.accept(',')) {
    Attribute attribute;
    attribute.name = cursor_.word();
    if (attribute.name.empty() || !cursor_.expect('='))
      return cursor_.fail_here("expected name=value");
    attribute.value = cursor_.attribute_value();
    if (attribute.value.empty()) return cursor_.fail_here("expected a value");
    parts_.attributes.push_back(attribute);
    if (!ends_a_pair) read_calls(attribute.name, attribute.value);
  }
  instruction.attribute_count =
      static_cast<std::uint32_t>(parts_.attributes.size()) - instruction.first_attribute;
  instruction.called_count =
      static_cast<std::uint32_t>(parts_.called.size()) - instruction.first_called;
  if (cursor_.failed()) return;
  if (instruction.opcode == Opcode::kWhile) {
    // Flattened schedules and dataflow want {condition, body}, whatever the text's order.
    if (instruction.called_count != 2)
      return cursor_.fail(start, "a while needs condition= and body=");
    const bool body_first = parts_.attributes[instruction.first_attribute].name == "body";
    if (body_first)
      std::swap(parts_.called[instruction.first_called],
                parts_.called[instruction.first_called + 1]);
  }
  const bool needs_call = instruction.opcode == Opcode::kFusion ||
                          instruction.opcode == Opcode::kCall ||
                          instruction.opcode == Opcode::kAsyncStart;
  if (needs_call && instruction.called_count == 0)
    cursor_.fail(start, std::string(instruction.opcode_text) + " names no computation");
}

void TextReader::read_calls(std::string_view name, std::string_view value) {
  static constexpr std::string_view kOne[] = {"calls",  "to_apply",         "condition",
                                              "body",   "true_computation", "false_computation",
                                              "select", "scatter"};
  static constexpr std::string_view kMany[] = {"branch_computations", "called_computations"};
  const bool one = std::ranges::find(kOne, name) != std::end(kOne);
  const bool many = std::ranges::find(kMany, name) != std::end(kMany);
  if (!one && !many) return;
  const auto position = static_cast<std::size_t>(value.data() - text_->data());
  if (one && value.starts_with('{'))
    return cursor_.fail(position, "a computation written inside an instruction is not read yet",
                        "dump with XLA's default print options");
  std::size_t at = 0;
  while ((at = value.find_first_not_of("{}%, \n\t", at)) != std::string_view::npos) {
    const std::size_t end = std::min(value.find_first_of("},  \n\t", at), value.size());
    parts_.called.push_back(mention(value.substr(at, end - at), position + at));
    at = end;
  }
}

void TextReader::define(std::string_view name, std::size_t at, Operand value) {
  bool is_new = false;
  Operand& slot = values_.insert(name, is_new);
  if (!is_new) return cursor_.fail(at, "'" + std::string(name) + "' is defined twice");
  slot = value;
  last_ = value;
}

void TextReader::define_tuple_element(const Instruction& instruction, std::size_t at) {
  std::optional<std::int64_t> index;
  for (std::size_t i = instruction.first_attribute; i < parts_.attributes.size(); ++i)
    if (parts_.attributes[i].name == "index")
      if (const auto numbers = parse_integers(parts_.attributes[i].value); !numbers.empty())
        index = numbers[0];
  if (!index || instruction.operand_count != 1)
    return cursor_.fail(at, "get-tuple-element needs one operand and index=");
  program_.has_explicit_elements = true;
  Operand value = parts_.operands.back();
  value.node = element(value, *index, at);
  parts_.operands.pop_back();
  parts_.attributes.resize(instruction.first_attribute);
  define(instruction.name, at, value);
}

/// The node of tuple element `index` of an operand.
ShapeNodeIndex TextReader::element(Operand of, std::int64_t index, std::size_t at) {
  const Shape shape = parts_.instructions[of.instruction.index].shape.at(of.node);
  if (index < 0 || index >= shape.tuple_size()) {
    cursor_.fail(at, "tuple element " + std::to_string(index) + " does not exist: the shape is " +
                         to_string(shape).substr(0, 120));
    return of.node;
  }
  return of.node + shape.element_node(static_cast<std::uint32_t>(index));
}

ComputationId TextReader::mention(std::string_view name, std::size_t at) {
  bool is_new = false;
  NamedComputation& named = computations_.insert(name, is_new);
  if (is_new) {
    named.id = program_.computations.push(nullptr);
    named.first_mention = at;
    computation_names_.push_back(name);
  }
  return named.id;
}

void TextReader::check_parameters(std::size_t at) {
  std::vector<bool> seen;
  for (const Instruction& instruction : parts_.instructions) {
    if (instruction.opcode != Opcode::kParameter) continue;
    const std::uint32_t number = parameter_number(instruction);
    if (seen.size() <= number) seen.resize(number + 1);
    if (seen[number])
      return cursor_.fail(at, "parameter " + std::to_string(number) + " is defined twice");
    seen[number] = true;
  }
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (!seen[i]) return cursor_.fail(at, "parameter " + std::to_string(i) + " is missing");
}

void TextReader::finish() {
  if (cursor_.failed()) return;
  for (const std::string_view name : computation_names_) {
    const NamedComputation& named = *computations_.find(name);
    if (!named.defined)
      return cursor_.fail(named.first_mention,
                          "computation '" + std::string(name) + "' is called but not defined",
                          "the file may be cut");
  }
  if (!has_entry_)
    return cursor_.fail(text_->size(), "the module has no ENTRY computation",
                        "the file may be cut");
  if (const auto circle = find_call_cycle(program_))
    return cursor_.fail(computations_.find(program_[*circle].name())->first_mention,
                        "computation '" + std::string(program_[*circle].name()) + "' calls itself");
  resolve_aliases();
}

void TextReader::resolve_aliases() {
  const auto node_of = [](Shape shape,
                          const std::vector<std::int64_t>& path) -> std::optional<ShapeNodeIndex> {
    ShapeNodeIndex node = 0;
    for (const std::int64_t i : path) {
      const Shape here = shape.at(node);
      if (i < 0 || i >= here.tuple_size()) return std::nullopt;
      node += here.element_node(static_cast<std::uint32_t>(i));
    }
    return node;
  };
  const Computation& entry = program_.entry_computation();
  const Shape output = entry.shape_of(entry.root());
  for (std::size_t i = 0; i < program_.aliases.size(); ++i) {
    InputOutputAlias& alias = program_.aliases[i];
    const auto output_node = node_of(output, alias_paths_[i].output);
    std::optional<ShapeNodeIndex> parameter_node;
    if (alias.parameter < entry.parameters().size())
      parameter_node =
          node_of(entry[entry.parameters()[alias.parameter]].shape, alias_paths_[i].parameter);
    if (!output_node || !parameter_node)
      return cursor_.fail(0,
                          "input_output_alias names a result or a parameter that does not exist");
    alias.output = *output_node;
    alias.parameter_node = *parameter_node;
  }
}

}  // namespace

Result<Program> read_hlo_text(std::shared_ptr<const std::string> text, const std::string& path) {
  return TextReader(std::move(text), path).read();
}

}  // namespace spillway::hlo
