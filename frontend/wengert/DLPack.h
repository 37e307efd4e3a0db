// Tensors to and from other libraries of the same process, by DLPack: the C structs that NumPy,
// PyTorch, JAX and others exchange.
//
// The structs are only named here. Their definitions are in dlpack.h, of any version, or in <wengert/DLPackAbi.h>.
#pragma once

#include <wengert/Tensor.h>

extern "C" {
struct DLManagedTensor;
struct DLManagedTensorVersioned;
}

namespace wg {

/// x for another library: no copy, the elements stay where they are, on the CPU, row-major with explicit strides. The
/// receiver must not write to them, since other handles see the same tensor. It calls `result->deleter(result)` once,
/// on any thread, when it needs them no more; until then they stay as they are, even if x is the value of a variable
/// that is assigned. All dtypes are exported. Errors: a symbolic tensor has no elements.
WENGERT_API DLManagedTensor *to_dlpack(const Tensor &x, Where where = Where::current());
/// The same as the struct of DLPack 1.0, which says that the elements are read-only.
WENGERT_API DLManagedTensorVersioned *to_dlpack_versioned(const Tensor &x, Where where = Where::current());

/// A tensor of the elements that another library manages, at most 8 axes. Takes over `managed` in any case: its deleter
/// is called once, when the last handle to the memory goes, or before this returns or throws if nothing refers to the
/// memory: after a copy and after an error.
///
/// No copy is made of elements that are row-major without gaps and aligned to their size; they must stay as they are
/// while a tensor refers to them, and nothing here writes to them. Other strides, negative ones too, elements that are
/// not aligned, and bools other than 0 and 1 are copied.
///
/// Errors: another device than the CPU (kDLCPU); another dtype than f64, f32, bf16, f16, i64, i32, u8 and bool of 8
/// bits, or vectors of them (lanes); a negative size or more than 8 axes; a null pointer to elements; of the versioned
/// struct, another major version than 1.
WENGERT_API Tensor from_dlpack(DLManagedTensor *managed, Where where = Where::current());
WENGERT_API Tensor from_dlpack(DLManagedTensorVersioned *managed, Where where = Where::current());

} // namespace wg
