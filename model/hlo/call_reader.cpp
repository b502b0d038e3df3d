#include "model/hlo/call_reader.h"

#include <algorithm>

namespace spillway::hlo {

/// Told apart by the length of the name first: most attributes call nothing.
void CallReader::note(std::string_view name, std::string_view value,
                      std::vector<ComputationId>& called) {
  switch (name.size()) {
    case 4:
      if (name == "body") roles_.body = read_one(value);
      return;
    case 5:
      if (name == "calls") called.push_back(read_one(value));
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

ComputationId CallReader::read_one(std::string_view value) {
  if (value.starts_with('{')) {
    cursor_.fail_at(value, "a computation written inside an instruction is not read",
                    "dump with XLA's default print options");
    return {};
  }
  if (value.starts_with('%')) value.remove_prefix(1);
  return computations_.mention(value);
}

/// {%a, %b}
void CallReader::read_list(std::string_view value, std::vector<ComputationId>& called) {
  constexpr std::string_view kBetween = "{}%, \t\r\n";
  std::size_t at = 0;
  while ((at = value.find_first_not_of(kBetween, at)) != std::string_view::npos) {
    const std::size_t end = std::min(value.find_first_of(kBetween, at), value.size());
    called.push_back(computations_.mention(value.substr(at, end - at)));
    at = end;
  }
}

}  // namespace spillway::hlo
