// Computations in HLO text: %name (p: f32[2]) -> f32[2] { instructions }.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/hlo/call_reader.h"
#include "model/hlo/computation_table.h"
#include "model/hlo/cursor.h"
#include "model/hlo/shape_reader.h"
#include "model/hlo/text_table.h"
#include "model/program/program.h"

namespace spillway::hlo {

/// Reads one computation after the other, and keeps its buffers between them. What is written
/// inside an instruction, an operation in place of an operand or a computation in place of its
/// name, is read in inner_text.cpp.
class ComputationReader {
 public:
  /// `text` is what the cursor is in; the computations keep it alive.
  ComputationReader(std::shared_ptr<const std::string> text, Cursor& cursor);

  /// Reads the computation at the cursor into the table. Mistakes are the cursor's.
  void read();

  ComputationTable& computations() { return computations_; }
  /// The computation marked ENTRY.
  std::optional<ComputationId> entry() const { return entry_; }
  /// Whether some instruction was a get-tuple-element, as XLA wrote before it printed %x#1.
  bool has_explicit_elements() const { return has_explicit_elements_; }

 private:
  void read_signature();
  void read_thread();
  void read_instructions(std::string_view computation);
  void read_instruction();
  Instruction read_operation();
  void infer_shape(Instruction& instruction);
  void read_literal(Instruction& instruction);
  void read_operands(Instruction& instruction);
  void read_operand(Instruction& reader, std::vector<Operand>& waiting);
  bool read_operand_shape(char first);
  Operand read_inner_operation();
  ComputationId read_inner_computation(std::string_view name);
  void read_attributes(Instruction& instruction);
  void finish_attributes(Instruction& instruction);
  bool extend_mesh(const Instruction& instruction, std::string_view device_ids);
  void define(std::string_view name, Operand value);
  void define_tuple_element(const Instruction& instruction);
  ShapeNodeIndex element(Operand of, std::int64_t index, std::string_view at);
  void wrap_async(Instruction& instruction);
  void check_parameters(std::string_view computation);
  std::shared_ptr<const Computation> finish(std::string_view name);

  Cursor& cursor_;
  ShapeReader shapes_;
  ComputationTable computations_;
  CallReader calls_;
  std::shared_ptr<const void> storage_;  ///< what every computation keeps alive
  std::optional<ComputationId> entry_;
  bool has_explicit_elements_ = false;

  // The computation being read.
  ComputationParts parts_;
  TextTable<Operand> values_;
  std::optional<Operand> root_;
  std::optional<Operand> last_;
  std::vector<const Instruction*> by_number_;
  int depth_ = 0;  ///< of operations and computations that are written inside others
};

}  // namespace spillway::hlo
