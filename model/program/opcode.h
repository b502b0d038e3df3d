// The operations of HLO, by XLA's own names.
#pragma once

#include <cstdint>
#include <string_view>

namespace spillway {

// clang-format off
#define SPILLWAY_OPCODES(X)                                                                        \
  X(kAbs, "abs") X(kAdd, "add") X(kAddDependency, "add-dependency") X(kAfterAll, "after-all")      \
  X(kAllGather, "all-gather") X(kAllGatherDone, "all-gather-done")                                 \
  X(kAllGatherStart, "all-gather-start") X(kAllReduce, "all-reduce")                               \
  X(kAllReduceDone, "all-reduce-done") X(kAllReduceStart, "all-reduce-start")                      \
  X(kAllToAll, "all-to-all") X(kAllToAllDone, "all-to-all-done")                                   \
  X(kAllToAllStart, "all-to-all-start") X(kAnd, "and")                                             \
  X(kAsyncDone, "async-done") X(kAsyncStart, "async-start") X(kAsyncUpdate, "async-update")        \
  X(kAtan2, "atan2") X(kBatchNormGrad, "batch-norm-grad")                                          \
  X(kBatchNormInference, "batch-norm-inference") X(kBatchNormTraining, "batch-norm-training")      \
  X(kBitcast, "bitcast") X(kBitcastConvert, "bitcast-convert") X(kBroadcast, "broadcast")          \
  X(kCall, "call") X(kCbrt, "cbrt") X(kCeil, "ceil") X(kCholesky, "cholesky") X(kClamp, "clamp")   \
  X(kClz, "count-leading-zeros") X(kCollectiveBroadcast, "collective-broadcast")                   \
  X(kCollectivePermute, "collective-permute")                                                      \
  X(kCollectivePermuteDone, "collective-permute-done")                                             \
  X(kCollectivePermuteStart, "collective-permute-start") X(kCompare, "compare")                    \
  X(kComplex, "complex") X(kConcatenate, "concatenate") X(kConditional, "conditional")             \
  X(kConstant, "constant") X(kConvert, "convert") X(kConvolution, "convolution") X(kCopy, "copy")  \
  X(kCopyDone, "copy-done") X(kCopyStart, "copy-start") X(kCos, "cosine")                          \
  X(kCustomCall, "custom-call") X(kDivide, "divide") X(kDomain, "domain") X(kDot, "dot")           \
  X(kDynamicReshape, "dynamic-reshape") X(kDynamicSlice, "dynamic-slice")                          \
  X(kDynamicUpdateSlice, "dynamic-update-slice") X(kErf, "erf") X(kExp, "exponential")             \
  X(kExpm1, "exponential-minus-one") X(kFft, "fft") X(kFloor, "floor") X(kFusion, "fusion")        \
  X(kGather, "gather") X(kGetDimensionSize, "get-dimension-size")                                  \
  X(kGetTupleElement, "get-tuple-element") X(kImag, "imag") X(kInfeed, "infeed") X(kIota, "iota")  \
  X(kIsFinite, "is-finite") X(kLog, "log") X(kLog1p, "log-plus-one") X(kLogistic, "logistic")      \
  X(kMap, "map") X(kMaximum, "maximum") X(kMinimum, "minimum") X(kMultiply, "multiply")            \
  X(kNegate, "negate") X(kNot, "not") X(kOptimizationBarrier, "opt-barrier") X(kOr, "or")          \
  X(kOutfeed, "outfeed") X(kPad, "pad") X(kParameter, "parameter")                                 \
  X(kPartitionId, "partition-id") X(kPopulationCount, "popcnt") X(kPower, "power")                 \
  X(kRaggedAllToAll, "ragged-all-to-all") X(kRaggedDot, "ragged-dot") X(kReal, "real")             \
  X(kRecv, "recv") X(kRecvDone, "recv-done") X(kReduce, "reduce")                                  \
  X(kReducePrecision, "reduce-precision") X(kReduceScatter, "reduce-scatter")                      \
  X(kReduceScatterDone, "reduce-scatter-done") X(kReduceScatterStart, "reduce-scatter-start")      \
  X(kReduceWindow, "reduce-window") X(kRemainder, "remainder") X(kReplicaId, "replica-id")         \
  X(kReshape, "reshape") X(kReverse, "reverse") X(kRng, "rng")                                     \
  X(kRngBitGenerator, "rng-bit-generator")                                                         \
  X(kRngGetAndUpdateState, "rng-get-and-update-state") X(kRoundAfz, "round-nearest-afz")           \
  X(kRoundEven, "round-nearest-even") X(kRsqrt, "rsqrt") X(kScaledDot, "scaled-dot")               \
  X(kScatter, "scatter") X(kSelect, "select") X(kSelectAndScatter, "select-and-scatter")           \
  X(kSend, "send") X(kSendDone, "send-done") X(kSetDimensionSize, "set-dimension-size")            \
  X(kShiftLeft, "shift-left") X(kShiftRightArithmetic, "shift-right-arithmetic")                   \
  X(kShiftRightLogical, "shift-right-logical") X(kSign, "sign") X(kSin, "sine")                    \
  X(kSlice, "slice") X(kSort, "sort") X(kSqrt, "sqrt")                                             \
  X(kStochasticConvert, "stochastic-convert") X(kSubtract, "subtract") X(kTan, "tan")              \
  X(kTanh, "tanh") X(kTopK, "topk") X(kTranspose, "transpose")                                     \
  X(kTriangularSolve, "triangular-solve") X(kTuple, "tuple") X(kWhile, "while") X(kXor, "xor")

enum class Opcode : std::uint8_t {
#define SPILLWAY_OPCODE_ENUM(id, name) id,
  SPILLWAY_OPCODES(SPILLWAY_OPCODE_ENUM)
#undef SPILLWAY_OPCODE_ENUM
  kUnknown,  ///< a name this version does not know; the instruction keeps it
};
// clang-format on

/// XLA's name of an opcode, as HLO text has it; "unknown" for kUnknown.
std::string_view opcode_name(Opcode opcode);

/// The opcode of a name, or kUnknown.
Opcode find_opcode(std::string_view name);

/// Whether each element of the result depends only on the elements at the same place in the
/// operands (and the operation keeps the shape). Dynamic-update-slice and fusions are not.
bool is_elementwise(Opcode opcode);

/// Whether the instruction moves data between devices and runs at once: all-gather, all-reduce, …
bool is_collective(Opcode opcode);

/// Whether the instruction shows its operand under another shape, element for element in the order
/// of memory: bitcasts, and reshapes, which after layout assignment are no more than that.
bool is_renaming(Opcode opcode);

/// Whether control goes into the computations that the instruction calls: loops, calls, branches.
/// Fusions and the functions of reductions are part of one kernel.
bool is_control_flow(Opcode opcode);
/// The same with what async starts wrap: whatever is called and runs by itself.
bool runs_what_it_calls(Opcode opcode);

/// `X-start` and `X-done` in either spelling: the generic async pair, and the older named ones.
bool is_async_start(Opcode opcode);
bool is_async_done(Opcode opcode);

}  // namespace spillway
