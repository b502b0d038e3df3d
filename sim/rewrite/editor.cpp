#include "sim/rewrite/editor.h"

#include <algorithm>
#include <numeric>

namespace spillway {
void append_shape(Shape shape, ShapeData& out) {
  const auto offset = static_cast<std::uint32_t>(out.dims.size());
  std::uint32_t next_dim = offset;
  for (ShapeNodeIndex node = 0; node < shape.node_count(); ++node) {
    const Shape part = shape.at(node);
    ShapeData::Node copy;
    copy.type = part.type();
    copy.space = part.space();
    copy.bits = static_cast<std::uint8_t>(part.bits());
    copy.has_layout = !part.minor_to_major().empty();
    copy.rank =
        part.is_tuple() ? part.tuple_size() : static_cast<std::uint32_t>(part.dims().size());
    copy.first_dim = next_dim;
    copy.subtree = part.node_count();
    copy.bytes = part.bytes().value();
    if (!part.is_tuple()) {
      out.dims.insert(out.dims.end(), part.dims().begin(), part.dims().end());
      out.minor_to_major.insert(out.minor_to_major.end(), part.minor_to_major().begin(),
                                part.minor_to_major().end());
      out.minor_to_major.resize(out.dims.size(), 0);
      next_dim = static_cast<std::uint32_t>(out.dims.size());
    }
    out.nodes.push_back(copy);
  }
}

Shape with_space(Shape shape, const std::vector<ShapeNodeIndex>& nodes, MemorySpace space,
                 RewriteStorage& storage) {
  ShapeData data;
  append_shape(shape, data);
  for (const ShapeNodeIndex node : nodes) data.nodes[node].space = space;
  return storage.shape(std::move(data));
}

Shape make_tuple_shape(const std::vector<Shape>& elements, RewriteStorage& storage) {
  ShapeData data;
  data.nodes.push_back({.type = ElementType::kTuple});
  for (const Shape& element : elements) append_shape(element, data);
  data.nodes[0].rank = static_cast<std::uint32_t>(elements.size());
  data.nodes[0].bytes = static_cast<std::int64_t>(elements.size()) * 8;
  data.nodes[0].subtree = static_cast<std::uint32_t>(data.nodes.size());
  return storage.shape(std::move(data));
}

Shape make_context_shape(RewriteStorage& storage) {
  ShapeData data;
  data.nodes.push_back({.type = ElementType::kU32, .bits = 32, .bytes = 4});
  return storage.shape(std::move(data));
}

ComputationEditor::ComputationEditor(const Computation& original)
    : original_(&original),
      nodes_(original.size()),
      erased_(original.size(), 0),
      root_{original.root().instruction.index, original.root().node},
      kept_alive_(original.parts().storage) {
  original_operands_.reserve(original.parts().operands.size());
  for (const Operand& operand : original.parts().operands)
    original_operands_.push_back({operand.instruction.index, operand.node});
  order_.resize(original.size());
  std::iota(order_.begin(), order_.end(), Handle{0});
}

ComputationEditor::Node& ComputationEditor::node(Handle handle) const {
  if (!nodes_[handle]) {
    const auto read = operands(handle);
    const auto calls = called(handle);
    const auto says = attributes(handle);
    nodes_[handle] = std::make_unique<Node>(Node{instruction(handle),
                                                 {read.begin(), read.end()},
                                                 {calls.begin(), calls.end()},
                                                 {says.begin(), says.end()},
                                                 erased_[handle] != 0});
  }
  return *nodes_[handle];
}

std::span<ComputationEditor::Reference> ComputationEditor::operands(Handle handle) {
  if (nodes_[handle]) return nodes_[handle]->operands;
  const Instruction& in = instruction(handle);
  return std::span(original_operands_).subspan(in.first_operand, in.operand_count);
}

std::span<const ComputationEditor::Reference> ComputationEditor::operands(Handle handle) const {
  if (nodes_[handle]) return nodes_[handle]->operands;
  const Instruction& in = instruction(handle);
  return std::span(original_operands_).subspan(in.first_operand, in.operand_count);
}

std::span<const ComputationId> ComputationEditor::called(Handle handle) const {
  if (nodes_[handle]) return nodes_[handle]->called;
  return original_->called(InstructionIndex(handle));
}

std::span<const Attribute> ComputationEditor::attributes(Handle handle) const {
  if (nodes_[handle]) return nodes_[handle]->attributes;
  return original_->attributes(InstructionIndex(handle));
}

ComputationEditor::Handle ComputationEditor::add(Node node) {
  const Handle handle = size();
  nodes_.push_back(std::make_unique<Node>(std::move(node)));
  order_.push_back(handle);
  return handle;
}

std::size_t ComputationEditor::place(Handle handle) const {
  return static_cast<std::size_t>(std::ranges::find(order_, handle) - order_.begin());
}

void ComputationEditor::move_after(Handle handle, Handle other) {
  order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(place(handle)));
  order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(place(other)) + 1, handle);
}

void ComputationEditor::move_before(Handle handle, Handle other) {
  order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(place(handle)));
  order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(place(other)), handle);
}

void ComputationEditor::move_to_top(Handle handle) {
  order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(place(handle)));
  const auto first = std::ranges::find_if(order_, [this](Handle h) {
    const Opcode opcode = instruction(h).opcode;
    return opcode != Opcode::kParameter && opcode != Opcode::kConstant;
  });
  order_.insert(first, handle);
}

void ComputationEditor::sort_by_operands() {
  std::vector<Handle> sorted;
  enum : char { kOpen, kOnPath, kPlaced };
  std::vector<char> state(nodes_.size(), kOpen);
  std::vector<std::pair<Handle, std::size_t>> path;  // and how many of its operands are placed
  for (const Handle first : order_) {
    if (state[first] == kPlaced) continue;
    path.push_back({first, 0});
    while (!path.empty()) {
      auto& [handle, done] = path.back();
      const auto read = operands(handle);
      while (done < read.size() && state[read[done].handle] == kPlaced) ++done;
      state[handle] = kOnPath;
      if (done < read.size()) {
        const Handle operand = read[done].handle;
        check(state[operand] != kOnPath, "a rewrite lets a value depend on itself");
        path.push_back({operand, 0});
        continue;
      }
      state[handle] = kPlaced;
      sorted.push_back(handle);
      path.pop_back();
    }
  }
  order_ = std::move(sorted);
}

void ComputationEditor::keep_alive(const Computation& other) {
  kept_alive_.insert(kept_alive_.end(), other.parts().storage.begin(), other.parts().storage.end());
}

void ComputationEditor::redirect(Reference from, Reference to, std::optional<Handle> keep) {
  const std::uint32_t nodes = shape_of(from).node_count();
  const auto apply = [&](Reference& reference) {
    if (reference.handle == from.handle && reference.node >= from.node &&
        reference.node < from.node + nodes)
      reference = {to.handle, to.node + (reference.node - from.node)};
  };
  for (Handle handle = 0; handle < size(); ++handle)
    if (handle != keep && !is_erased(handle))
      for (Reference& operand : operands(handle)) apply(operand);
  apply(root_);
}

std::vector<ComputationEditor::Handle> ComputationEditor::users(Handle handle) const {
  std::vector<Handle> found;
  for (const Handle user : order_) {
    if (is_erased(user)) continue;
    const auto reads = [handle](const Reference& operand) { return operand.handle == handle; };
    if (std::ranges::any_of(operands(user), reads)) found.push_back(user);
  }
  return found;
}

bool ComputationEditor::depends_on(Handle handle, Handle other) const {
  std::vector<char> seen(nodes_.size(), 0);
  std::vector<Handle> open = {handle};
  while (!open.empty()) {
    const Handle at = open.back();
    open.pop_back();
    if (at == other) return true;
    if (seen[at]) continue;
    seen[at] = 1;
    for (const Reference& operand : operands(at)) open.push_back(operand.handle);
  }
  return false;
}

bool ComputationEditor::is_read(Reference reference) const {
  const auto reads = [&](const Reference& operand) {
    return operand.handle == reference.handle && operand.node <= reference.node &&
           reference.node < operand.node + shape_of(operand).node_count();
  };
  if (reads(root_)) return true;
  for (Handle handle = 0; handle < size(); ++handle)
    if (!is_erased(handle) && std::ranges::any_of(operands(handle), reads)) return true;
  return false;
}

void ComputationEditor::renumber(Handle handle,
                                 const std::vector<std::optional<ShapeNodeIndex>>& nodes) {
  const auto apply = [&](Reference& reference) {
    if (reference.handle != handle) return;
    check(reference.node < nodes.size() && nodes[reference.node].has_value(),
          "a rewrite drops a result that something reads");
    reference.node = *nodes[reference.node];
  };
  for (Handle user = 0; user < size(); ++user)
    if (!is_erased(user))
      for (Reference& operand : operands(user)) apply(operand);
  apply(root_);
}

namespace {

bool has_no_effect(Opcode opcode, std::span<const Attribute> attributes) {
  switch (opcode) {
    case Opcode::kBitcast:
    case Opcode::kBroadcast:
    case Opcode::kConstant:
    case Opcode::kCopy:
    case Opcode::kFusion:
    case Opcode::kIota:
      return true;
    case Opcode::kCustomCall:
      return std::ranges::any_of(attributes, [](const Attribute& attribute) {
        return attribute.name == "custom_call_target" && attribute.value == "\"AllocateBuffer\"";
      });
    default:
      return false;
  }
}

}  // namespace

void ComputationEditor::erase_unread(Handle handle) {
  std::vector<Handle> candidates = {handle};
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    const Handle unread = candidates[k];
    if (is_erased(unread) || root_.handle == unread ||
        !has_no_effect(instruction(unread).opcode, attributes(unread)) || !users(unread).empty())
      continue;
    erase(unread);
    for (const Reference& operand : operands(unread)) candidates.push_back(operand.handle);
  }
}

void ComputationEditor::erase_all_unread() {
  std::vector<std::size_t> reads(nodes_.size(), 0);
  reads[root_.handle] = 1;
  for (Handle handle = 0; handle < size(); ++handle)
    if (!is_erased(handle))
      for (const Reference& operand : operands(handle)) ++reads[operand.handle];
  std::vector<Handle> unread;
  const auto add = [&](Handle handle) {
    if (reads[handle] == 0 && !is_erased(handle) &&
        has_no_effect(instruction(handle).opcode, attributes(handle)))
      unread.push_back(handle);
  };
  for (Handle handle = 0; handle < size(); ++handle) add(handle);
  while (!unread.empty()) {
    const Handle handle = unread.back();
    unread.pop_back();
    erase(handle);
    for (const Reference& operand : operands(handle))
      if (--reads[operand.handle] == 0) add(operand.handle);
  }
}

void ComputationEditor::drop_dead() {
  std::vector<bool> needed(nodes_.size(), false);
  std::vector<Handle> stack = {root_.handle};
  while (!stack.empty()) {
    const Handle handle = stack.back();
    stack.pop_back();
    if (needed[handle]) continue;
    needed[handle] = true;
    for (const Reference& operand : operands(handle)) stack.push_back(operand.handle);
  }
  for (Handle handle = 0; handle < size(); ++handle)
    if (!needed[handle] && instruction(handle).opcode != Opcode::kParameter) erase(handle);
}

std::string ComputationEditor::find_misorder() const {
  std::vector<bool> made(nodes_.size(), false);
  for (const Handle handle : order_) {
    if (is_erased(handle)) continue;
    for (const Reference& operand : operands(handle))
      if (!made[operand.handle])
        return std::string(instruction(handle).name) + " reads " +
               std::string(instruction(operand.handle).name) + " before it is defined";
    made[handle] = true;
  }
  return made[root_.handle] ? "" : "it returns what is erased";
}

std::shared_ptr<const Computation> ComputationEditor::finish(
    std::string_view name, std::shared_ptr<const void> storage) const {
  if (const std::string wrong = find_misorder(); !wrong.empty())
    check(false, "after a rewrite " + wrong);
  std::vector<std::uint32_t> index(nodes_.size(), 0);
  std::uint32_t next = 0;
  for (const Handle handle : order_)
    if (!is_erased(handle)) index[handle] = next++;
  const auto to_operand = [&index](const Reference& r) {
    return Operand{InstructionIndex(index[r.handle]), r.node};
  };
  ComputationParts parts;
  parts.name = name;
  parts.instructions.reserve(next);
  parts.operands.reserve(original_operands_.size());
  if (original_ != nullptr) {
    parts.called.reserve(original_->parts().called.size());
    parts.attributes.reserve(original_->parts().attributes.size());
  }
  for (const Handle handle : order_) {
    if (is_erased(handle)) continue;
    const auto read = operands(handle);
    const auto calls = called(handle);
    const auto says = attributes(handle);
    Instruction& in = parts.instructions.emplace_back(instruction(handle));
    in.first_operand = static_cast<std::uint32_t>(parts.operands.size());
    in.operand_count = static_cast<std::uint32_t>(read.size());
    in.first_called = static_cast<std::uint32_t>(parts.called.size());
    in.called_count = static_cast<std::uint32_t>(calls.size());
    in.first_attribute = static_cast<std::uint32_t>(parts.attributes.size());
    in.attribute_count = static_cast<std::uint32_t>(says.size());
    for (const Reference& operand : read) parts.operands.push_back(to_operand(operand));
    parts.called.insert(parts.called.end(), calls.begin(), calls.end());
    parts.attributes.insert(parts.attributes.end(), says.begin(), says.end());
  }
  parts.root = to_operand(root_);
  parts.storage = kept_alive_;
  parts.storage.push_back(std::move(storage));
  return make_computation(std::move(parts));
}

}  // namespace spillway
