// Kernels as XLA's GPU compiler forms them, written into an HloBlock: fusions of element operations
// and reductions, matrix products with what is fused to them, slices of stacks, collectives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/spec/hlo_text.h"
#include "model/spec/step_spec.h"

namespace spillway {

/// A fusion being written: `in` makes an operand of it, the others compute with operands, `finish`
/// puts the fusion into the block.
class HloFusion {
 public:
  HloFusion(HloBlock& block, std::string base, std::string kind = "kLoop");

  HloValue in(const HloValue& operand);
  HloValue scalar(ElementType type, std::string_view literal);
  HloValue unary(std::string_view operation, const HloValue& a);
  HloValue binary(std::string_view operation, const HloValue& a, const HloValue& b);
  HloValue convert(const HloValue& a, ElementType type);
  HloValue view(const HloValue& a, std::vector<std::int64_t> dims);
  /// `dims` are those of the result that the operand's are.
  HloValue broadcast(const HloValue& a, const std::vector<std::int64_t>& to,
                     const std::vector<std::int64_t>& dims);
  HloValue transpose(const HloValue& a, const std::vector<std::int64_t>& permutation);
  HloValue slice(const HloValue& a, std::size_t dim, std::int64_t from, std::int64_t to);
  HloValue concatenate(const HloValues& parts, std::size_t dim);
  HloValue reduce(const HloValue& a, const std::vector<std::int64_t>& dims,
                  std::string_view operation = "add");
  /// Row `indices[i]` of a matrix, for each i.
  HloValue rows(const HloValue& a, const HloValue& indices);
  /// A matrix of zeros with row i of `a` added to row `indices[i]`, for each i.
  HloValue sum_rows(const HloValue& a, const HloValue& indices, std::int64_t count);
  HloValue iota(ElementType type, const std::vector<std::int64_t>& dims, std::size_t dim);
  HloValue select_equal(const HloValue& a, const HloValue& b);  ///< pred
  /// Row `index` of a stack, with a 1 in front; counted from the end where `last` is the last row.
  HloValue row(const HloValue& stack, const HloValue& index, std::optional<std::int64_t> last);
  HloValue set_row(const HloValue& stack, const HloValue& value, const HloValue& index,
                   std::optional<std::int64_t> last);
  /// lhs and rhs contracted over one dimension each, behind `batch` common leading ones.
  HloValue dot(const HloValue& a, const HloValue& b, std::size_t a_dim, std::size_t b_dim,
               std::size_t batch = 0, std::optional<ElementType> type = {});

  HloValue finish(const HloValue& result);
  HloValues finish(const HloValues& results);
  /// The same as an asynchronous kernel beside the others: start and done.
  HloValue finish_async(const HloValue& result);

 private:
  HloBlock& outer_;
  HloBlock inner_;
  std::string base_, kind_;
  HloValues operands_, parameters_;
};

/// What a product does besides: a[m,k] x b[k,n].
struct ProductOptions {
  std::size_t a_dim = 1, b_dim = 0;  ///< contracted
  std::size_t batch = 0;
  HloValues added = {};  ///< to the result, in the same kernel
};
HloValue product(HloBlock& block, const HloValue& a, const HloValue& b,
                 const ProductOptions& options = {});

/// Which devices talk to each other: those that differ along these axes.
std::string replica_groups(const Mesh& mesh, const std::vector<MeshAxis>& axes);
/// Devices of such a group.
std::int64_t group_size(const Mesh& mesh, const std::vector<MeshAxis>& axes);

/// One piece of each device along `dim`, put together; several arrays in one collective.
HloValues all_gather(HloBlock& block, const Mesh& mesh, const std::vector<MeshAxis>& axes,
                     const HloValues& values, const std::vector<std::size_t>& dims);
HloValues reduce_scatter(HloBlock& block, const Mesh& mesh, const std::vector<MeshAxis>& axes,
                         const HloValues& values, const std::vector<std::size_t>& dims);
HloValue all_reduce(HloBlock& block, const Mesh& mesh, const std::vector<MeshAxis>& axes,
                    const HloValue& value);
HloValue all_to_all(HloBlock& block, const Mesh& mesh, const std::vector<MeshAxis>& axes,
                    const HloValue& value);

/// A while loop that counts element 0 of its carry from 0 to `trips`.
HloValues while_loop(HloBlock& block, const std::string& body, const HloValues& carry,
                     std::int64_t trips);

}  // namespace spillway
