// A computation of HLO: instructions in the order the text gives them, immutable once built and
// shared between programs. Everything is an index into flat storage; nothing points at a program.
//
// get-tuple-element has no instruction here. Whoever reads %x#1, or a get-tuple-element of %x,
// holds an Operand {x, node}: the producer and which node of its (tuple) shape.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/base/ids.h"
#include "model/program/opcode.h"
#include "model/program/shape.h"

namespace spillway {

/// Position of an instruction within its computation, in text order.
using InstructionIndex = Id<struct InstructionTag>;
/// A computation within a program. A rewritten program keeps the ids of what it did not touch.
using ComputationId = Id<struct ComputationTag>;

/// An instruction of a program.
struct InstructionId {
  ComputationId computation;
  InstructionIndex instruction;
  friend auto operator<=>(const InstructionId&, const InstructionId&) = default;
};

/// A value that an instruction reads: a node of the shape of what `instruction` produces.
struct Operand {
  InstructionIndex instruction;
  ShapeNodeIndex node = 0;
  friend auto operator<=>(const Operand&, const Operand&) = default;
};

/// `name=value` behind the operands, as text: {"dimensions", "{0}"}, {"kind", "kLoop"}. Quotes of a
/// quoted value are kept.
struct Attribute {
  std::string_view name;
  std::string_view value;
};

/// Who reads an instruction's result: operand `operand_number` of `user`.
struct Use {
  InstructionIndex user;
  std::uint32_t operand_number = 0;
};

struct Instruction {
  std::string_view name;  ///< without the leading %
  Opcode opcode = Opcode::kUnknown;
  /// As written: differs from opcode_name for kUnknown, and for slice-start and the like, which are
  /// read as async-start.
  std::string_view opcode_text;
  Shape shape;
  /// What stands between the parentheses where it is no operand: the number of a parameter, the
  /// value of a constant.
  std::string_view literal;
  // Ranges into the computation's flat storage.
  std::uint32_t first_operand = 0, operand_count = 0;
  std::uint32_t first_called = 0, called_count = 0;
  std::uint32_t first_attribute = 0, attribute_count = 0;
};

/// Parts of a computation while it is being built; see make_computation.
struct ComputationParts {
  std::string_view name;
  std::vector<Instruction> instructions;
  std::vector<Operand> operands;
  std::vector<ComputationId> called;
  std::vector<Attribute> attributes;
  Operand root;
  /// Owners of every string_view and Shape above.
  std::vector<std::shared_ptr<const void>> storage;
};

class Computation {
  struct Key {};  // only make_computation constructs one

 public:
  Computation(Key, ComputationParts parts);

  std::string_view name() const { return parts_.name; }
  std::size_t size() const { return parts_.instructions.size(); }
  IdRange<InstructionIndex> instructions() const { return IdRange<InstructionIndex>(size()); }

  const Instruction& operator[](InstructionIndex i) const {
    check(i.index < size(), "an instruction is outside its computation");
    return parts_.instructions[i.index];
  }
  std::span<const Operand> operands(InstructionIndex i) const {
    const Instruction& in = (*this)[i];
    return std::span(parts_.operands).subspan(in.first_operand, in.operand_count);
  }
  /// Computations it calls: a while {condition, body}, a conditional its branches, a fusion one.
  std::span<const ComputationId> called(InstructionIndex i) const {
    const Instruction& in = (*this)[i];
    return std::span(parts_.called).subspan(in.first_called, in.called_count);
  }
  std::span<const Attribute> attributes(InstructionIndex i) const {
    const Instruction& in = (*this)[i];
    return std::span(parts_.attributes).subspan(in.first_attribute, in.attribute_count);
  }
  std::span<const Use> uses(InstructionIndex i) const {
    return std::span(uses_).subspan(first_use_[i.index],
                                    first_use_[i.index + 1] - first_use_[i.index]);
  }

  /// What the computation returns. Usually a whole instruction; a node of one where the text's root
  /// is a get-tuple-element.
  Operand root() const { return parts_.root; }
  const Instruction& root_instruction() const { return (*this)[parts_.root.instruction]; }
  /// Parameter instructions by number.
  std::span<const InstructionIndex> parameters() const { return parameters_; }

  /// The shape an operand has: a node of its producer's.
  Shape shape_of(Operand operand) const {
    return (*this)[operand.instruction].shape.at(operand.node);
  }

  /// The value of an attribute, if the instruction has it.
  std::optional<std::string_view> attribute(InstructionIndex i, std::string_view name) const;

  const ComputationParts& parts() const { return parts_; }

 private:
  friend std::shared_ptr<const Computation> make_computation(ComputationParts parts);

  ComputationParts parts_;
  std::vector<InstructionIndex> parameters_;
  std::vector<Use> uses_;
  std::vector<std::uint32_t> first_use_;  ///< size() + 1 entries
};

/// Indexes uses and parameters. Operands must come before their users, and parameter numbers must
/// be 0, 1, … without gaps; the readers see to both.
std::shared_ptr<const Computation> make_computation(ComputationParts parts);

/// A parameter's number.
std::uint32_t parameter_number(const Instruction& parameter);

/// What a value is a renaming of, through bitcasts and reshapes; itself where it is none.
Operand behind_renamings(const Computation& computation, Operand value);

/// The number of the parameter that a value is, behind renamings; empty where it is none.
std::optional<std::uint32_t> find_parameter(const Computation& computation, Operand value);

/// The part `key=value` of metadata, for example op_name, without quotes; empty when absent.
std::string_view metadata_field(const Computation& computation, InstructionIndex i,
                                std::string_view key);

/// The same as a text of its own, with \' and \" undone: state['params'].
std::string metadata_text(const Computation& computation, InstructionIndex i, std::string_view key);

/// Whether the computation's instruction has an attribute equal to `value`: kind=kLoop.
bool has_attribute(const Computation& computation, InstructionIndex i, std::string_view name,
                   std::string_view value);

/// Integers of a braced list: "{0,2}" or "0,2" gives 0 and 2. Text that is no such list gives what
/// could be read.
std::vector<std::int64_t> parse_integers(std::string_view list);

}  // namespace spillway
