#include "model/hlo/proto_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/base/result.h"
#include "model/hlo/char_class.h"
#include "model/hlo/id_table.h"
#include "model/hlo/proto/hlo.pb.h"
#include "model/hlo/proto_attributes.h"
#include "model/hlo/proto_values.h"
#include "model/program/opcode.h"

namespace spillway::hlo {
namespace {

/// Text is as long as its proto, within a factor of two. Names and payloads that are written once
/// and named a million times make it longer.
constexpr std::size_t kMostGrowth = 16;
constexpr std::size_t kSmallText = std::size_t{1} << 20;
constexpr int kPred = 1;

bool consists_of(std::string_view text, CharClass chars) {
  return !text.empty() && std::ranges::all_of(text, [chars](char c) { return is(c, chars); });
}

/// The first mistake is kept, and all writing stops there.
class TextWriter {
 public:
  TextWriter(const pb::HloModule& module, std::size_t bytes)
      : module_(module), most_(kSmallText + bytes * kMostGrowth) {
    text_.reserve(bytes + bytes / 4);
  }

  ProtoText run() {
    for (const pb::HloComputation& computation : module_.computations())
      if (!computations_.emplace(computation.id(), &computation).second)
        fail(fmt::format("two computations have the id {}", computation.id()));
    find_schedule();
    write_header();
    write_stack_frames();
    for (const pb::HloComputation& computation : module_.computations()) {
      if (failed()) break;
      write_computation(computation);
    }
    if (!computations_.contains(module_.entry_computation_id()))
      fail(fmt::format("the entry is computation {}, which is not there",
                       module_.entry_computation_id()));
    return {std::move(text_), is_scheduled_, std::move(problem_)};
  }

 private:
  struct Known {
    const pb::HloInstruction* instruction = nullptr;
    bool ordered = false;  ///< has its place in the order
    bool written = false;
  };

  bool failed() const { return !problem_.empty(); }
  void fail(std::string problem) {
    if (!failed()) problem_ = std::move(problem);
  }
  bool has_grown_too_much() {
    if (text_.size() > most_) fail("repeats its names and payloads beyond all reason");
    return failed();
  }

  void find_schedule();
  void write_header();
  void write_aliases();
  void write_stack_frames();
  void write_computation(const pb::HloComputation& computation);
  std::vector<const pb::HloInstruction*> order_of(const pb::HloComputation& computation);
  void write_instruction(const pb::HloInstruction& in, bool is_root);
  void write_operands(const pb::HloInstruction& in);
  void write_calls(const pb::HloInstruction& in, Opcode opcode);
  void write_call(std::string_view role, std::int64_t id);
  void write_control(const pb::HloInstruction& in);
  void write_backend_config(const pb::HloInstruction& in);

  const pb::HloModule& module_;
  std::size_t most_;
  std::unordered_map<std::int64_t, const pb::HloComputation*> computations_;
  std::unordered_map<std::int64_t, const pb::Sequence*> sequences_;
  bool is_scheduled_ = false;
  std::string text_;
  std::string problem_;

  // The computation being written.
  IdTable<Known> instructions_;
};

/// A module is scheduled when every computation is that runs instruction by instruction; a fusion
/// does not.
void TextWriter::find_schedule() {
  for (const pb::ScheduledComputation& scheduled : module_.schedule().sequences()) {
    if (!computations_.contains(scheduled.computation_id()))
      fail(fmt::format("the schedule names computation {}, which is not there",
                       scheduled.computation_id()));
    sequences_[scheduled.computation_id()] = &scheduled.sequence();
  }
  std::unordered_set<std::int64_t> fused;
  for (const pb::HloComputation& computation : module_.computations()) {
    if (computation.is_fusion_computation()) fused.insert(computation.id());
    for (const pb::HloInstruction& in : computation.instructions())
      if (in.opcode() == "fusion")
        fused.insert(in.called_computation_ids().begin(), in.called_computation_ids().end());
  }
  is_scheduled_ = std::ranges::all_of(module_.computations(), [&](const auto& computation) {
    return sequences_.contains(computation.id()) || fused.contains(computation.id());
  });
}

void TextWriter::write_header() {
  text_ += "HloModule ";
  for (const char c : module_.name()) text_ += is(c, kName) ? c : '_';
  if (module_.name().empty()) text_ += "unnamed";
  if (is_scheduled_) text_ += ", is_scheduled=true";
  write_aliases();
  // Not the config, which the proto lacks, but what was made of it.
  const pb::DeviceAssignment& devices = module_.device_assignment();
  if (devices.computation_count() > 1)
    text_ += fmt::format(", num_partitions={}", devices.computation_count());
  if (devices.replica_count() > 1)
    text_ += fmt::format(", replica_count={}", devices.replica_count());
  text_ += '\n';
}

void TextWriter::write_aliases() {
  const auto path = [this](const auto& indices) {
    text_ += '{';
    append_numbers(text_, indices);
    text_ += '}';
  };
  if (module_.input_output_alias().entries_size() > 0) {
    constexpr int kMustAlias = 2;
    text_ += ", input_output_alias={ ";
    const char* before = "";
    for (const pb::AliasEntry& entry : module_.input_output_alias().entries()) {
      text_ += before;
      path(entry.output_path());
      text_ += fmt::format(": ({}, ", entry.parameter());
      path(entry.parameter_path());
      text_ += entry.kind() == kMustAlias ? ", must-alias)" : ", may-alias)";
      before = ", ";
    }
    text_ += " }";
  }
  if (module_.buffer_donor().entries_size() > 0) {
    text_ += ", buffer_donor={ ";
    const char* before = "";
    for (const pb::DonorEntry& entry : module_.buffer_donor().entries()) {
      text_ += fmt::format("{}({}, ", before, entry.parameter());
      path(entry.parameter_path());
      text_ += ')';
      before = ", ";
    }
    text_ += " }";
  }
}

void TextWriter::write_stack_frames() {
  const pb::StackFrameIndex& index = module_.stack_frame_index();
  const auto names = [this](const char* table, const auto& texts) {
    if (texts.empty()) return;
    text_ += table;
    std::size_t row = 0;
    for (const std::string& name : texts) {
      text_ += fmt::format("\n{} ", ++row);
      append_quoted(text_, name);
    }
    text_ += "\n\n";
  };
  const auto id = [](std::int32_t number) { return std::max(number, 0); };
  names("FileNames", index.file_names());
  names("FunctionNames", index.function_names());
  std::size_t row = 0;
  if (index.file_locations_size() > 0) text_ += "FileLocations\n";
  for (const pb::FileLocation& at : index.file_locations())
    text_ += fmt::format("{} {{file_name_id={} function_name_id={} line={}}}\n", ++row,
                         id(at.file()), id(at.function()), id(at.line()));
  row = 0;
  if (index.stack_frames_size() > 0) text_ += "\nStackFrames\n";
  for (const pb::StackFrame& frame : index.stack_frames())
    text_ += fmt::format("{} {{file_location_id={} parent_frame_id={}}}\n", ++row,
                         id(frame.location()), id(frame.parent()));
}

void TextWriter::write_computation(const pb::HloComputation& computation) {
  if (!consists_of(computation.name(), kName))
    return fail("a computation has the name " + quoted(computation.name()) +
                ", which HLO does not allow");
  instructions_.clear();
  for (const pb::HloInstruction& in : computation.instructions())
    if (!instructions_.insert(in.id(), {&in}))
      return fail(fmt::format("two instructions of computation {} have the id {}",
                              quoted(computation.name()), in.id()));
  if (instructions_.find(computation.root_id()) == nullptr)
    return fail(fmt::format("the root of computation {} is instruction {}, which is not there",
                            quoted(computation.name()), computation.root_id()));
  text_ += computation.id() == module_.entry_computation_id() ? "\nENTRY %" : "\n%";
  text_ += computation.name();
  text_ += " {\n";
  for (const pb::HloInstruction* in : order_of(computation)) {
    write_instruction(*in, in->id() == computation.root_id());
    if (has_grown_too_much()) return;
    instructions_.find(in->id())->written = true;
  }
  text_ += "}\n";
}

/// The schedule's order; that of the proto where there is none.
std::vector<const pb::HloInstruction*> TextWriter::order_of(const pb::HloComputation& computation) {
  std::vector<const pb::HloInstruction*> order;
  order.reserve(static_cast<std::size_t>(computation.instructions_size()));
  const auto sequence = sequences_.find(computation.id());
  if (!is_scheduled_ || sequence == sequences_.end()) {
    for (const pb::HloInstruction& in : computation.instructions()) order.push_back(&in);
    return order;
  }
  for (const std::int64_t id : sequence->second->instruction_ids()) {
    Known* const found = instructions_.find(id);
    if (found == nullptr || found->ordered) {
      fail(fmt::format("the schedule of computation {} names instruction {}, which is {}",
                       quoted(computation.name()), id,
                       found == nullptr ? "not there" : "in it already"));
      return order;
    }
    found->ordered = true;
    order.push_back(found->instruction);
  }
  if (order.size() != instructions_.size())
    fail(fmt::format("the schedule of computation {} leaves out {} of its {} instructions",
                     quoted(computation.name()), instructions_.size() - order.size(),
                     instructions_.size()));
  return order;
}

void TextWriter::write_instruction(const pb::HloInstruction& in, bool is_root) {
  if (!consists_of(in.name(), kName))
    return fail("an instruction has the name " + quoted(in.name()) + ", which HLO does not allow");
  if (!consists_of(in.opcode(), kWord))
    return fail(fmt::format("instruction {} has the operation {}, which is no name of one",
                            quoted(in.name()), quoted(in.opcode())));
  text_ += is_root ? "  ROOT %" : "  %";
  text_ += in.name();
  text_ += " = ";
  append_shape(text_, in.shape());
  text_ += ' ';
  text_ += in.opcode();
  text_ += '(';
  const Opcode opcode = find_opcode(in.opcode());
  if (opcode == Opcode::kParameter)
    text_ += std::to_string(in.parameter_number());
  else if (opcode == Opcode::kConstant)
    append_literal(text_, in.literal(), in.shape());
  else
    write_operands(in);
  text_ += ')';
  write_calls(in, opcode);
  append_attributes(text_, in);
  write_control(in);
  write_backend_config(in);
  text_ += '\n';
}

void TextWriter::write_operands(const pb::HloInstruction& in) {
  const char* before = "%";
  for (const std::int64_t id : in.operand_ids()) {
    const Known* const found = instructions_.find(id);
    if (found == nullptr)
      return fail(fmt::format("instruction {} reads instruction {}, which is not there",
                              quoted(in.name()), id));
    if (!found->written)
      return fail(fmt::format("instruction {} reads {}, which comes after it", quoted(in.name()),
                              quoted(found->instruction->name())));
    text_ += before;
    text_ += found->instruction->name();
    before = ", %";
    if (has_grown_too_much()) return;
  }
}

/// Computations called, by role. XLA keeps a while's body in front of its condition.
void TextWriter::write_calls(const pb::HloInstruction& in, Opcode opcode) {
  const auto& called = in.called_computation_ids();
  if (called.empty()) return;
  switch (opcode) {
    case Opcode::kWhile:
      if (called.size() != 2)
        return fail(fmt::format("while {} calls {} computation(s): it needs a body and a condition",
                                quoted(in.name()), called.size()));
      write_call("condition=%", called[1]);
      return write_call("body=%", called[0]);
    case Opcode::kConditional: {
      const Known* const index =
          in.operand_ids().empty() ? nullptr : instructions_.find(in.operand_ids(0));
      if (called.size() == 2 && index != nullptr &&
          index->instruction->shape().element_type() == kPred) {
        write_call("true_computation=%", called[0]);
        return write_call("false_computation=%", called[1]);
      }
      break;
    }
    case Opcode::kSelectAndScatter:
      if (called.size() != 2)
        return fail("select-and-scatter " + quoted(in.name()) + " needs two computations");
      write_call("select=%", called[0]);
      return write_call("scatter=%", called[1]);
    case Opcode::kFusion:
    case Opcode::kAsyncStart:
    case Opcode::kAsyncUpdate:
    case Opcode::kAsyncDone:
      if (called.size() == 1) return write_call("calls=%", called[0]);
      break;
    default:
      if (called.size() == 1) return write_call("to_apply=%", called[0]);
      break;
  }
  const bool branches = opcode == Opcode::kConditional;
  text_ += branches ? ", branch_computations={" : ", called_computations={";
  const char* before = "%";
  for (const std::int64_t id : called) {
    const auto found = computations_.find(id);
    if (found == computations_.end()) return write_call("", id);
    text_ += before + found->second->name();
    before = ", %";
    if (has_grown_too_much()) return;
  }
  text_ += '}';
}

void TextWriter::write_call(std::string_view role, std::int64_t id) {
  const auto found = computations_.find(id);
  if (found == computations_.end())
    return fail(fmt::format("the module calls computation {}, which is not there", id));
  text_ += ", ";
  text_ += role;
  text_ += found->second->name();
}

void TextWriter::write_control(const pb::HloInstruction& in) {
  if (in.control_predecessor_ids().empty()) return;
  text_ += ", control-predecessors={";
  const char* before = "%";
  for (const std::int64_t id : in.control_predecessor_ids()) {
    const Known* const found = instructions_.find(id);
    if (found == nullptr)
      return fail(fmt::format("instruction {} waits for instruction {}, which is not there",
                              quoted(in.name()), id));
    text_ += before + found->instruction->name();
    before = ", %";
    if (has_grown_too_much()) return;
  }
  text_ += '}';
}

/// The text in the instruction, or the one that its payload has or names.
void TextWriter::write_backend_config(const pb::HloInstruction& in) {
  std::string_view config = in.backend_config();
  const pb::Payload& payload = in.backend_config_payload();
  if (payload.where_case() == pb::Payload::kValue) config = payload.value();
  if (payload.where_case() == pb::Payload::kId) {
    if (payload.id() < 0 || payload.id() >= module_.payloads_size())
      return fail(fmt::format("instruction {} has payload {} as its backend_config, of {} in all",
                              quoted(in.name()), payload.id(), module_.payloads_size()));
    config = module_.payloads(static_cast<int>(payload.id()));
  }
  if (config.empty()) return;
  text_ += ", backend_config=";
  append_json_or_quoted(text_, config);
}

}  // namespace

ProtoText to_text(const pb::HloModule& module, std::size_t bytes) {
  return TextWriter(module, bytes).run();
}

}  // namespace spillway::hlo
