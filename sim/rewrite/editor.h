// Changes a copy of a computation: instructions added, moved, replaced; then a new immutable one is
// made. Operands are by editor handle, which stay valid whatever is moved.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/program/program.h"

namespace spillway {

/// Owns the names, attribute texts and shapes that a rewrite makes. Programs keep it alive.
class RewriteStorage {
 public:
  std::string_view text(std::string value) { return texts_.emplace_back(std::move(value)); }
  Shape shape(ShapeData data) { return shapes_.add(std::move(data)); }

 private:
  std::deque<std::string> texts_;
  ShapePool shapes_;
};

/// Adds a copy of `shape`, with its layouts and memory spaces, behind what `out` holds.
void append_shape(Shape shape, ShapeData& out);
/// A copy of `shape` whose nodes in `nodes` lie in `space`.
Shape with_space(Shape shape, const std::vector<ShapeNodeIndex>& nodes, MemorySpace space,
                 RewriteStorage& storage);
/// A tuple of these shapes.
Shape make_tuple_shape(const std::vector<Shape>& elements, RewriteStorage& storage);
/// The 32-bit context element that XLA ends an async start's tuple with.
Shape make_context_shape(RewriteStorage& storage);

class ComputationEditor {
 public:
  /// An instruction in the editor. Those of the original computation have their index.
  using Handle = std::uint32_t;
  struct Reference {
    Handle handle = 0;
    ShapeNodeIndex node = 0;
    friend bool operator==(const Reference&, const Reference&) = default;
  };
  struct Node {
    Instruction instruction;  ///< its ranges are not used here
    std::vector<Reference> operands;
    std::vector<ComputationId> called;
    std::vector<Attribute> attributes;
    bool erased = false;
  };

  /// Starts with a copy of `original`, in its text order. The original must outlive the editor.
  explicit ComputationEditor(const Computation& original);
  /// Starts empty.
  ComputationEditor() = default;

  /// Instructions there are, erased ones included; handles count up to it.
  Handle size() const { return static_cast<Handle>(nodes_.size()); }
  /// Valid as long as the editor.
  Node& operator[](Handle handle) { return node(handle); }
  const Node& operator[](Handle handle) const { return node(handle); }
  Shape shape_of(Reference reference) const {
    return instruction(reference.handle).shape.at(reference.node);
  }

  /// Adds an instruction at the end of the order.
  Handle add(Node node);
  void erase(Handle handle) {
    if (nodes_[handle])
      nodes_[handle]->erased = true;
    else
      erased_[handle] = 1;
  }
  void move_after(Handle handle, Handle other);
  void move_before(Handle handle, Handle other);
  /// Puts an instruction in front of all but parameters and constants.
  void move_to_top(Handle handle);
  /// Where it stands; earlier is smaller.
  std::size_t place(Handle handle) const;

  /// Puts every instruction behind its operands; otherwise the order stays.
  void sort_by_operands();
  /// For instructions copied here from `other`: what owns their texts and shapes.
  void keep_alive(const Computation& other);

  /// Everyone who reads `from` (or an element of it) reads `to` instead, except `keep`.
  void redirect(Reference from, Reference to, std::optional<Handle> keep = std::nullopt);
  /// Whether an instruction reads another, itself or through others.
  bool depends_on(Handle handle, Handle other) const;
  /// Instructions that read an instruction, in order.
  std::vector<Handle> users(Handle handle) const;
  /// Whether anything, or the root, reads this very element or the whole around it.
  bool is_read(Reference reference) const;
  /// Everyone who reads element n of an instruction reads element `nodes[n]` of it instead: for one
  /// whose result has changed. Elements that nobody reads may be without a new one.
  void renumber(Handle handle, const std::vector<std::optional<ShapeNodeIndex>>& nodes);

  Reference root() const { return root_; }
  void set_root(Reference root) { root_ = root; }
  /// Drops instructions that the root does not need; parameters stay.
  void drop_dead();
  /// Erases an instruction if nobody reads it, then those that only it read. Whatever may have an
  /// effect of its own stays.
  void erase_unread(Handle handle);
  /// Does so with every instruction.
  void erase_all_unread();

  /// Someone who reads what is erased, or made only behind it, in words; empty: there is none.
  std::string find_misorder() const;

  /// The edited computation, in which nothing is read before it is made. `storage` is kept alive by
  /// it, as is what `original` kept.
  std::shared_ptr<const Computation> finish(std::string_view name,
                                            std::shared_ptr<const void> storage) const;

 private:
  Node& node(Handle handle) const;
  const Instruction& instruction(Handle handle) const {
    return nodes_[handle] ? nodes_[handle]->instruction : (*original_)[InstructionIndex(handle)];
  }
  std::span<Reference> operands(Handle handle);
  std::span<const Reference> operands(Handle handle) const;
  std::span<const ComputationId> called(Handle handle) const;
  std::span<const Attribute> attributes(Handle handle) const;
  bool is_erased(Handle handle) const {
    return nodes_[handle] ? nodes_[handle]->erased : erased_[handle] != 0;
  }

  const Computation* original_ = nullptr;
  /// Null for instructions of the original that nobody asked for yet: most of them stay what they
  /// are, but for the operands that `redirect` and `renumber` change.
  mutable std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Reference> original_operands_;
  std::vector<char> erased_;  ///< of those without a node
  std::vector<Handle> order_;
  Reference root_;
  std::vector<std::shared_ptr<const void>> kept_alive_;
};

}  // namespace spillway
