#include "model/hlo/computation_reader.h"

#include <algorithm>
#include <utility>

#include "model/hlo/async_spelling.h"
#include "model/hlo/inner_text.h"

namespace spillway::hlo {
namespace {

/// Owners of all that computations hold views of.
struct TextAndShapes {
  std::shared_ptr<const std::string> text;
  std::shared_ptr<const ShapePool> shapes;
};

bool needs_call(Opcode opcode) {
  return opcode == Opcode::kFusion || opcode == Opcode::kCall || opcode == Opcode::kAsyncStart;
}

/// Moves the operands that `reader` has so far to those that wait.
void stash(std::vector<Operand>& operands, Instruction& reader, std::vector<Operand>& waiting) {
  const auto first = operands.begin() + reader.first_operand;
  waiting.insert(waiting.end(), first, operands.end());
  operands.erase(first, operands.end());
}

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

}  // namespace

ComputationReader::ComputationReader(std::shared_ptr<const std::string> text, Cursor& cursor)
    : cursor_(cursor),
      calls_(cursor, computations_,
             [this](std::string_view name) { return read_inner_computation(name); }),
      storage_(std::make_shared<TextAndShapes>(TextAndShapes{std::move(text), shapes_.pool()})) {}

void ComputationReader::read() {
  const bool is_entry = cursor_.accept_word("ENTRY");
  const std::string_view name = cursor_.name("a computation");
  if (name == "HloModule")
    return cursor_.fail_at(name, "a second module begins here", "give one module a file");
  read_signature();
  read_instructions(name);
  read_thread();
  if (cursor_.failed()) return;
  const auto id = computations_.define(name, finish(name));
  if (!id) return cursor_.fail_at(name, "computation " + quoted(name) + " is defined twice");
  if (!is_entry) return;
  if (entry_) return cursor_.fail_at(name, "there are two ENTRY computations");
  entry_ = id;
}

/// (p: f32[2]) -> f32[2] {   or just   {
void ComputationReader::read_signature() {
  if (cursor_.peek() == '(') {
    cursor_.balanced();
    if (cursor_.accept("->")) shapes_.read(cursor_);
  }
  read_thread();
  if (!cursor_.accept('{')) cursor_.fail_here("expected '{' and the instructions of a computation");
}

/// , execution_thread="host"   in front of the instructions or behind them
void ComputationReader::read_thread() {
  while (cursor_.accept(',')) {
    cursor_.word();
    cursor_.expect('=');
    cursor_.string();
  }
}

void ComputationReader::read_instructions(std::string_view computation) {
  parts_.instructions.clear();
  parts_.operands.clear();
  parts_.called.clear();
  parts_.attributes.clear();
  values_.clear();
  root_.reset();
  last_.reset();
  while (!cursor_.failed() && !cursor_.accept('}')) {
    if (cursor_.at_end())
      return cursor_.fail_here("computation " + quoted(computation) + " does not end",
                               "the file may be cut");
    read_instruction();
  }
  if (!last_ && !cursor_.failed())
    cursor_.fail_at(computation, "computation " + quoted(computation) + " has no instructions");
  check_parameters(computation);
}

void ComputationReader::read_instruction() {
  const bool is_root = cursor_.accept_word("ROOT");
  const std::string_view name = cursor_.name("an instruction");
  cursor_.expect('=');
  Instruction instruction = read_operation();
  instruction.name = name;
  read_attributes(instruction);
  if (cursor_.failed()) return;

  if (instruction.opcode == Opcode::kGetTupleElement) {
    define_tuple_element(instruction);
  } else {
    const InstructionIndex self(parts_.instructions.size());
    parts_.instructions.push_back(instruction);
    define(instruction.name, Operand{self, 0});
  }
  if (!is_root) return;
  if (root_) return cursor_.fail_at(instruction.name, "a computation has one ROOT, not two");
  root_ = last_;
}

/// f32[2] add(%p, %q), what stands between a name and its attributes.
Instruction ComputationReader::read_operation() {
  Instruction instruction;
  const bool has_shape = !starts_operation(cursor_);
  if (has_shape) instruction.shape = shapes_.read(cursor_);
  instruction.opcode_text = cursor_.word();
  if (instruction.opcode_text.empty()) {
    cursor_.fail_here("expected an operation: add(…)");
    return instruction;
  }
  instruction.opcode = read_opcode(instruction.opcode_text);
  instruction.first_operand = static_cast<std::uint32_t>(parts_.operands.size());
  if (instruction.opcode == Opcode::kParameter || instruction.opcode == Opcode::kConstant)
    read_literal(instruction);
  else
    read_operands(instruction);
  if (!has_shape && !cursor_.failed()) infer_shape(instruction);
  // Operations inside the parentheses may have put down calls of their own.
  instruction.first_called = static_cast<std::uint32_t>(parts_.called.size());
  instruction.first_attribute = static_cast<std::uint32_t>(parts_.attributes.size());
  return instruction;
}

/// The number of a parameter, the value of a constant.
void ComputationReader::read_literal(Instruction& instruction) {
  if (cursor_.peek() != '(') return cursor_.fail_here("expected '('");
  const std::string_view group = cursor_.balanced();
  if (cursor_.failed()) return;
  instruction.literal = group.substr(1, group.size() - 2);
  if (instruction.opcode != Opcode::kParameter) return;
  const std::string_view number = without_blanks(instruction.literal);
  const bool digits = std::ranges::all_of(number, [](char c) { return is(c, kDigit); });
  constexpr std::size_t kMostDigits = 9;
  if (number.empty() || !digits || number.size() > kMostDigits)
    return cursor_.fail_at(instruction.literal, "expected the number of a parameter");
  instruction.literal = number;
}

/// The operands of one instruction stand side by side: those read before an operation that is
/// written between them wait until that has put down its own.
void ComputationReader::read_operands(Instruction& instruction) {
  if (!cursor_.expect('(')) return;
  std::vector<Operand> waiting;
  if (!cursor_.accept(')')) {
    do read_operand(instruction, waiting);
    while (cursor_.accept(','));
    cursor_.expect(')');
  }
  if (!waiting.empty()) [[unlikely]] {
    stash(parts_.operands, instruction, waiting);
    parts_.operands.insert(parts_.operands.end(), waiting.begin(), waiting.end());
  }
  instruction.operand_count =
      static_cast<std::uint32_t>(parts_.operands.size()) - instruction.first_operand;
}

/// %x, %x#1#0, with the shape in front as older XLA prints it, or an operation.
void ComputationReader::read_operand(Instruction& reader, std::vector<Operand>& waiting) {
  if (const char first = cursor_.peek(); first != '%') [[unlikely]] {
    const std::size_t start = cursor_.position();
    const bool has_shape = read_operand_shape(first);
    if (starts_operation(cursor_)) {
      if (has_shape) cursor_.move_to(start);
      stash(parts_.operands, reader, waiting);
      waiting.push_back(read_inner_operation());
      reader.first_operand = static_cast<std::uint32_t>(parts_.operands.size());
      return;
    }
  }
  const std::string_view name = cursor_.name("an operand");
  if (cursor_.failed()) return;
  const Operand* const known = values_.find(name);
  if (known == nullptr)
    return cursor_.fail_at(name, quoted(name) + " is not defined before it is used");
  Operand operand = *known;
  while (cursor_.accept('#')) {
    const auto index = cursor_.number();
    if (!index) return cursor_.fail_here("expected the number of a tuple element");
    operand.node = element(operand, *index, name);
  }
  parts_.operands.push_back(operand);
}

/// (f32[2], s32[]) %x, f32[2]{0} %x, or x without a %: takes the shape, if there is one.
bool ComputationReader::read_operand_shape(char first) {
  if (first != '(') {
    const std::size_t start = cursor_.position();
    const std::string_view name = cursor_.name("an operand");
    const std::string_view rest = cursor_.rest();
    const bool has_shape = rest.starts_with('[') || (name == "b" && rest.starts_with('('));
    cursor_.move_to(start);
    if (!has_shape) return false;
  }
  shapes_.read(cursor_);
  return true;
}

void ComputationReader::read_attributes(Instruction& instruction) {
  calls_.start(instruction.name);
  while (cursor_.accept(',')) {
    const std::string_view name = cursor_.word();
    if (name.empty() || !cursor_.expect('=')) return cursor_.fail_here("expected name=value");
    const std::string_view value = cursor_.attribute_value(name == "backend_config");
    if (value.empty()) return cursor_.fail_here("expected a value");
    if (name == "device_ids" && extend_mesh(instruction, value)) continue;
    parts_.attributes.push_back({name, value});
    calls_.note(name, value, parts_.called);
  }
  if (!cursor_.failed()) finish_attributes(instruction);
}

void ComputationReader::finish_attributes(Instruction& instruction) {
  // The end of an async pair names what its start calls; only the start counts.
  if (is_async_done(instruction.opcode) || instruction.opcode == Opcode::kAsyncUpdate)
    parts_.called.resize(instruction.first_called);
  calls_.finish(instruction, parts_.called);
  instruction.attribute_count =
      static_cast<std::uint32_t>(parts_.attributes.size()) - instruction.first_attribute;
  instruction.called_count =
      static_cast<std::uint32_t>(parts_.called.size()) - instruction.first_called;
  if (instruction.opcode == Opcode::kAsyncStart && instruction.opcode_text != "async-start")
    return wrap_async(instruction);
  if (needs_call(instruction.opcode) && instruction.called_count == 0)
    cursor_.fail_at(instruction.name,
                    std::string(instruction.opcode_text) + " names no computation");
}

/// replica_groups=mesh['x'=4], device_ids=(3,1,0,2) {'x'} is one attribute with a comma in it.
bool ComputationReader::extend_mesh(const Instruction& instruction, std::string_view device_ids) {
  if (parts_.attributes.size() == instruction.first_attribute) return false;
  Attribute& last = parts_.attributes.back();
  if (!last.value.starts_with("mesh[")) return false;
  last.value = {last.value.data(), static_cast<std::size_t>(device_ids.data() + device_ids.size() -
                                                            last.value.data())};
  return true;
}

void ComputationReader::define(std::string_view name, Operand value) {
  bool is_new = false;
  Operand& slot = values_.insert(name, is_new);
  if (!is_new) return cursor_.fail_at(name, quoted(name) + " is defined twice");
  slot = value;
  last_ = value;
}

/// get-tuple-element leaves no instruction: its name stands for an element of its operand.
void ComputationReader::define_tuple_element(const Instruction& instruction) {
  if (!calls_.index() || instruction.operand_count != 1)
    return cursor_.fail_at(instruction.name, "get-tuple-element needs one operand and index=");
  has_explicit_elements_ = true;
  Operand value = parts_.operands.back();
  value.node = element(value, *calls_.index(), instruction.name);
  parts_.operands.pop_back();
  parts_.attributes.resize(instruction.first_attribute);
  parts_.called.resize(instruction.first_called);
  if (cursor_.failed()) return;
  const Shape found = parts_.instructions[value.instruction.index].shape.at(value.node);
  if (!compatible(found, instruction.shape))
    return cursor_.fail_at(instruction.name, quoted(instruction.name) + " is " +
                                                 to_string(instruction.shape).substr(0, 120) +
                                                 ", but the element it takes is " +
                                                 to_string(found).substr(0, 120));
  define(instruction.name, value);
}

/// The node of tuple element `index` of an operand.
ShapeNodeIndex ComputationReader::element(Operand of, std::int64_t index, std::string_view at) {
  const Shape shape = parts_.instructions[of.instruction.index].shape.at(of.node);
  if (index < shape.tuple_size())
    return of.node + shape.element_node(static_cast<std::uint32_t>(index));
  cursor_.fail_at(at, "tuple element " + std::to_string(index) + " does not exist: the shape is " +
                          to_string(shape).substr(0, 120));
  return of.node;
}

/// What async-start would call is not written out.
void ComputationReader::wrap_async(Instruction& instruction) {
  const std::string spelling(instruction.opcode_text);
  if (instruction.shape.tuple_size() < 2)
    return cursor_.fail_at(instruction.name, spelling + " has the shape ((operands), result, …)");
  if (needs_call(wrapped_opcode(spelling)) && instruction.called_count == 0)
    return cursor_.fail_at(instruction.name, spelling + " names no computation");
  const ComputationId id =
      computations_.add(make_wrapped_computation(instruction, parts_, storage_));
  parts_.called.resize(instruction.first_called);
  parts_.called.push_back(id);
  instruction.called_count = 1;
}

void ComputationReader::check_parameters(std::string_view computation) {
  if (cursor_.failed()) return;
  by_number_.clear();
  for (const Instruction& instruction : parts_.instructions)
    if (instruction.opcode == Opcode::kParameter) by_number_.push_back(nullptr);
  for (const Instruction& instruction : parts_.instructions) {
    if (instruction.opcode != Opcode::kParameter) continue;
    const std::uint32_t number = parameter_number(instruction);
    if (number >= by_number_.size()) continue;  // then a smaller one is missing
    if (by_number_[number] != nullptr)
      return cursor_.fail_at(instruction.name, "parameter " + std::to_string(number) + " of " +
                                                   quoted(computation) + " is defined twice");
    by_number_[number] = &instruction;
  }
  for (std::size_t i = 0; i < by_number_.size(); ++i)
    if (by_number_[i] == nullptr)
      return cursor_.fail_at(computation, "parameter " + std::to_string(i) + " of " +
                                              quoted(computation) + " is missing");
}

std::shared_ptr<const Computation> ComputationReader::finish(std::string_view name) {
  parts_.name = name;
  parts_.root = root_.value_or(*last_);
  parts_.storage = {storage_};
  // Copies have no room to spare. A very large computation gives its buffers away instead.
  constexpr std::size_t kLarge = 1 << 16;
  if (parts_.instructions.size() < kLarge) return make_computation(ComputationParts(parts_));
  return make_computation(std::exchange(parts_, {}));
}

}  // namespace spillway::hlo
