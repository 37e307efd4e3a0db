# What is written at build time from the records ir/ops/*.td: MLIR's classes (mlir-tblgen) and everything else (tools/gen_ops.py).
set(gen ${CMAKE_BINARY_DIR}/include)
file(GLOB WENGERT_RECORDS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ir/*.td ${CMAKE_SOURCE_DIR}/ir/ops/*.td)
set(tblgen_includes -I ${CMAKE_SOURCE_DIR} -I ${MLIR_INCLUDE_DIRS})
set(WENGERT_GENERATED)

function(wg_tablegen tool source output)
  add_custom_command(OUTPUT ${gen}/${output}
    COMMAND ${LLVM_TOOLS_BINARY_DIR}/${tool} ${ARGN} ${tblgen_includes} ${CMAKE_SOURCE_DIR}/${source} -o ${gen}/${output} --write-if-changed
    DEPENDS ${WENGERT_RECORDS} ${CMAKE_SOURCE_DIR}/${source} VERBATIM)
  set(WENGERT_GENERATED ${WENGERT_GENERATED} ${gen}/${output} PARENT_SCOPE)
endfunction()

foreach(directory ir runtime frontend wengert tests autodiff passes)
  file(MAKE_DIRECTORY ${gen}/${directory})
endforeach()
wg_tablegen(mlir-tblgen ir/Interfaces.td ir/Interfaces.h.inc -gen-op-interface-decls)
wg_tablegen(mlir-tblgen ir/Interfaces.td ir/Interfaces.cpp.inc -gen-op-interface-defs)
wg_tablegen(mlir-tblgen ir/Ops.td ir/Dialect.h.inc -gen-dialect-decls -dialect=wg)
wg_tablegen(mlir-tblgen ir/Ops.td ir/Dialect.cpp.inc -gen-dialect-defs -dialect=wg)
foreach(kind enum attrdef)
  wg_tablegen(mlir-tblgen ir/Ops.td ir/Kernel_${kind}.h.inc -gen-${kind}-decls)
  wg_tablegen(mlir-tblgen ir/Ops.td ir/Kernel_${kind}.cpp.inc -gen-${kind}-defs)
endforeach()
# Four shards: ir/CMakeLists.txt compiles each in a file of its own.
wg_tablegen(mlir-tblgen ir/Ops.td ir/Ops.h.inc -gen-op-decls -op-shard-count=4)
wg_tablegen(mlir-tblgen ir/Ops.td ir/Ops.cpp.inc -gen-op-defs -op-shard-count=4)
wg_tablegen(mlir-tblgen autodiff/Passes.td autodiff/Passes.h.inc -gen-pass-decls -name Autodiff)
wg_tablegen(mlir-tblgen passes/Passes.td passes/Passes.h.inc -gen-pass-decls -name Wengert)
wg_tablegen(llvm-tblgen ir/Ops.td ir/Ops.json --dump-json)

set(written runtime/OpIds.inc runtime/OpTable.inc runtime/OpAttrs.inc ir/OpBridge.inc wengert/Ops.inc frontend/Ops.inc tests/Samples.inc ops.md agreement.md)
list(TRANSFORM written PREPEND ${gen}/)
add_custom_command(OUTPUT ${gen}/ops.stamp BYPRODUCTS ${written}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/gen_ops.py ${gen}/ir/Ops.json ${gen}
  COMMAND ${CMAKE_COMMAND} -E touch ${gen}/ops.stamp
  DEPENDS ${gen}/ir/Ops.json ${CMAKE_SOURCE_DIR}/tools/gen_ops.py VERBATIM)
add_custom_target(wg_generated DEPENDS ${WENGERT_GENERATED} ${gen}/ops.stamp)

# The digits that the library carries, as one string literal (frontend/data/Digits.cpp).
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/data/digits.txt)
file(READ ${CMAKE_SOURCE_DIR}/data/digits.txt digits)
file(CONFIGURE OUTPUT ${gen}/frontend/Digits.inc CONTENT "R\"(${digits})\"\n" @ONLY)
