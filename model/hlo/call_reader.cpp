#include "model/hlo/call_reader.h"

namespace spillway::hlo {

/// Told apart by the length of the name first: most attributes call nothing.
void CallReader::note(std::string_view name, std::string_view value,
                      std::vector<ComputationId>& called) {
  switch (name.size()) {
    case 4:
      if (name == "body") roles_.body = read_one(value);
      return;
    case 5:
      if (name == "calls") read_list(value, called);
      if (name == "index" && is(value[0], kDigit))
        if (const auto numbers = parse_integers(value); !numbers.empty()) roles_.index = numbers[0];
      return;
    case 6:
      if (name == "select") called.push_back(read_one(value));
      return;
    case 7:
      if (name == "scatter") called.push_back(read_one(value));
      return;
    case 8:
      if (name == "to_apply") called.push_back(read_one(value));
      return;
    case 9:
      if (name == "condition") roles_.condition = read_one(value);
      return;
    case 16:
      if (name == "true_computation") roles_.if_true = read_one(value);
      return;
    case 17:
      if (name == "false_computation") roles_.if_false = read_one(value);
      return;
    case 19:
      if (name == "branch_computations" || name == "called_computations") read_list(value, called);
      return;
    default:
      return;
  }
}

void CallReader::finish(const Instruction& instruction, std::vector<ComputationId>& called) {
  if (instruction.opcode == Opcode::kWhile) {
    if (!roles_.condition || !roles_.body)
      return cursor_.fail_at(instruction.name, "a while needs condition= and body=");
    called.insert(called.end(), {*roles_.condition, *roles_.body});
  }
  if (roles_.if_true && roles_.if_false)
    called.insert(called.end(), {*roles_.if_true, *roles_.if_false});
}

/// %a, a, or { x = … }
ComputationId CallReader::read_one(std::string_view value) {
  if (!value.starts_with('{')) {
    if (value.starts_with('%')) value.remove_prefix(1);
    return computations_.mention(value);
  }
  const std::size_t behind = cursor_.position();
  cursor_.move_to(value);
  ComputationId id;
  if (holds_instructions())
    id = read_inner();
  else
    cursor_.fail_at(value, "expected the name of a computation, or its instructions in braces");
  cursor_.move_to(behind);
  return id;
}

/// {%a, %b}, {{ x = … }, %b}, or what one computation may be
void CallReader::read_list(std::string_view value, std::vector<ComputationId>& called) {
  if (!value.starts_with('{')) return called.push_back(read_one(value));
  const std::size_t behind = cursor_.position();
  cursor_.move_to(value);
  if (holds_instructions()) {
    called.push_back(read_inner());
  } else {
    cursor_.expect('{');
    while (!cursor_.failed() && !cursor_.accept('}')) {
      called.push_back(cursor_.peek() == '{'
                           ? read_inner()
                           : computations_.mention(cursor_.name("a computation")));
      cursor_.accept(',');
    }
  }
  cursor_.move_to(behind);
}

/// Whether the braces at the cursor open with an instruction, and not with a name alone.
bool CallReader::holds_instructions() {
  const std::size_t start = cursor_.position();
  cursor_.expect('{');
  cursor_.accept_word("ROOT");
  const char first = cursor_.peek();
  const bool holds =
      (first == '%' || is(first, kName)) && (cursor_.name("a name"), cursor_.peek() == '=');
  cursor_.move_to(start);
  return holds;
}

/// Its instructions have attributes of their own.
ComputationId CallReader::read_inner() {
  const Roles outer = roles_;
  const ComputationId id = read_inner_(outer.caller);
  roles_ = outer;
  return id;
}

}  // namespace spillway::hlo
