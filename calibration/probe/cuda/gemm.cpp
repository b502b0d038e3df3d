#include "calibration/probe/cuda/gemm.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "calibration/probe/cuda/kernels.h"

namespace spillway::probe {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 20;

/// The functions used, by the types of the toolkit's own header.
struct Library {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_description = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_description = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  bool complete = false;

  Library() {
    void* handle = dlopen("libcublasLt.so.13", RTLD_NOW);
    if (handle == nullptr) handle = dlopen("/usr/local/cuda/lib64/libcublasLt.so.13", RTLD_NOW);
    if (handle == nullptr) return;
    complete = true;
    find(handle, create, "cublasLtCreate");
    find(handle, destroy, "cublasLtDestroy");
    find(handle, matmul, "cublasLtMatmul");
    find(handle, create_description, "cublasLtMatmulDescCreate");
    find(handle, set_description, "cublasLtMatmulDescSetAttribute");
    find(handle, create_layout, "cublasLtMatrixLayoutCreate");
    find(handle, create_preference, "cublasLtMatmulPreferenceCreate");
    find(handle, destroy_preference, "cublasLtMatmulPreferenceDestroy");
    find(handle, set_preference, "cublasLtMatmulPreferenceSetAttribute");
    find(handle, heuristic, "cublasLtMatmulAlgoGetHeuristic");
  }
  template <typename Function>
  void find(void* handle, Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    complete = complete && function != nullptr;
  }
};
const Library& library() {
  static const Library loaded;
  return loaded;
}

cudaDataType_t type_of(GemmType type) {
  return type == GemmType::kBf16 ? CUDA_R_16BF : CUDA_R_8F_E4M3;
}
std::int64_t bytes_of(GemmType type) { return type == GemmType::kBf16 ? 2 : 1; }

/// A product as cuBLASLt sees it; lives as long as the program.
struct Product {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool usable = false;
};

using Shape = std::tuple<GemmType, std::int64_t, std::int64_t, std::int64_t>;

/// Device memory that grows and is filled with operands of one kind.
struct Operands {
  void* memory = nullptr;
  std::int64_t count = 0;

  bool grow(std::int64_t wanted, GemmType type, bool zeros) {
    if (wanted <= count) return true;
    cudaFree(memory);
    memory = nullptr, count = 0;
    if (cudaMalloc(&memory, static_cast<std::size_t>(wanted * bytes_of(type))) != cudaSuccess)
      return false;
    count = wanted;
    launch_fill_operands(memory, count, type, zeros, nullptr);
    return cudaDeviceSynchronize() == cudaSuccess;
  }
};

}  // namespace

struct Gemms::State {
  int gpu = 0;
  cublasLtHandle_t handle = nullptr;
  void* workspace = nullptr;
  std::map<Shape, Product> products;
  std::map<std::pair<GemmType, bool>, Operands> left, right;
  Operands result;  // bf16

  Product make_product(const KernelLoad& load) const;
};

/// Columns lie one after the other (BLAS); A is given transposed, as 8-bit products ask for.
Product Gemms::State::make_product(const KernelLoad& load) const {
  const Library& l = library();
  Product product;
  const auto m = static_cast<std::uint64_t>(load.m), n = static_cast<std::uint64_t>(load.n),
             k = static_cast<std::uint64_t>(load.k);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const bool described =
      l.create_description(&product.description, CUBLAS_COMPUTE_32F, CUDA_R_32F) == 0 &&
      l.set_description(product.description, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                        sizeof transposed) == 0 &&
      l.create_layout(&product.a, type_of(load.type), k, m, load.k) == 0 &&
      l.create_layout(&product.b, type_of(load.type), k, n, load.k) == 0 &&
      l.create_layout(&product.d, CUDA_R_16BF, m, n, load.m) == 0 &&
      l.create_preference(&preference) == 0;
  if (!described) return product;
  const std::size_t workspace_bytes = kWorkspace;
  product.usable = l.set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                    &workspace_bytes, sizeof workspace_bytes) == 0 &&
                   l.heuristic(handle, product.description, product.a, product.b, product.d,
                               product.d, preference, 1, &found, &count) == 0 &&
                   count == 1;
  product.algorithm = found.algo;
  l.destroy_preference(preference);
  return product;
}

Gemms::Gemms(int gpu) : state_(std::make_unique<State>()) { state_->gpu = gpu; }

Gemms::~Gemms() {
  if (state_->handle != nullptr) library().destroy(state_->handle);
  cudaFree(state_->workspace);
  cudaFree(state_->result.memory);
  for (auto* side : {&state_->left, &state_->right})
    for (auto& [kind, operands] : *side) cudaFree(operands.memory);
}

std::string Gemms::prepare(const KernelLoad& load) {
  State& s = *state_;
  if (!library().complete) return "cuBLASLt (libcublasLt.so.13) is not there";
  if (s.handle == nullptr && library().create(&s.handle) != 0) return "cuBLASLt does not start";
  if (s.workspace == nullptr && cudaMalloc(&s.workspace, kWorkspace) != cudaSuccess)
    return "no memory for cuBLASLt's workspace";
  const auto kind = std::pair(load.type, load.zeros);
  if (!s.left[kind].grow(load.m * load.k, load.type, load.zeros) ||
      !s.right[kind].grow(load.k * load.n, load.type, load.zeros) ||
      !s.result.grow(load.m * load.n, GemmType::kBf16, true))
    return "no memory for the operands";
  const Shape shape{load.type, load.m, load.n, load.k};
  if (!s.products.contains(shape)) s.products[shape] = s.make_product(load);
  return s.products[shape].usable ? "" : "cuBLASLt has no algorithm for this product";
}

std::string Gemms::enqueue(const KernelLoad& load, cudaStream_t stream) {
  State& s = *state_;
  const Product& product = s.products.at({load.type, load.m, load.n, load.k});
  const auto kind = std::pair(load.type, load.zeros);
  const float one = 1, nothing = 0;
  const cublasStatus_t status = library().matmul(
      s.handle, product.description, &one, s.left.at(kind).memory, product.a,
      s.right.at(kind).memory, product.b, &nothing, s.result.memory, product.d, s.result.memory,
      product.d, &product.algorithm, s.workspace, kWorkspace, stream);
  return status == 0 ? "" : "cuBLASLt failed with status " + std::to_string(int(status));
}

}  // namespace spillway::probe
