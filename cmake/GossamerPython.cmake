# The Python module, build/python/gossamer/torch_<series>/_core*.so, for the Python whose torch is
# used. A package may hold modules for several series, see python/gossamer/_series.py.
#
# Its pybind11 is the one inside torch: another one's types, even of the same name, are strangers to
# torch's, and no process group could be passed.

execute_process(
  COMMAND ${gossamer_python} -c
          "import sysconfig as s
print(s.get_path('include') + ';' + s.get_config_var('EXT_SUFFIX'), end='')"
  WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
  RESULT_VARIABLE gossamer_headers_result
  OUTPUT_VARIABLE gossamer_headers_answer)
list(GET gossamer_headers_answer 0 GOSSAMER_PYTHON_INCLUDE)
list(GET gossamer_headers_answer 1 GOSSAMER_PYTHON_SUFFIX)
if(NOT gossamer_headers_result EQUAL 0 OR NOT EXISTS ${GOSSAMER_PYTHON_INCLUDE}/Python.h)
  message(FATAL_ERROR "[cmake] Python.h is missing, got ${GOSSAMER_PYTHON_INCLUDE}; install "
                      "python3-dev, or build without the module with -DGOSSAMER_PYTHON_MODULE=OFF")
endif()

set(GOSSAMER_PYTHON_FOLDER ${CMAKE_BINARY_DIR}/python/gossamer)
set(GOSSAMER_MODULE_FOLDER ${GOSSAMER_PYTHON_FOLDER}/${GOSSAMER_SERIES_FOLDER})

# gossamer_python_flags(<target>): for what becomes part of an extension module
function(gossamer_python_flags target)
  target_include_directories(${target} SYSTEM PRIVATE ${GOSSAMER_PYTHON_INCLUDE})
  target_link_libraries(${target} PRIVATE
    gossamer_torch gossamer_plan gossamer_probe gossamer_lab ${GOSSAMER_TORCH_DIR}/lib/libtorch_python.so)
  # The last is what ccache asks for.
  target_compile_options(${target} PRIVATE -fvisibility=hidden -fpch-preprocess)
endfunction()

# gossamer_python_module(<target> <name> <sources…>): an extension module gossamer.<name>
function(gossamer_python_module target name)
  add_library(${target} MODULE ${ARGN})
  gossamer_python_flags(${target})
  target_link_libraries(${target} PRIVATE gossamer_python_parts)
  target_precompile_headers(${target} REUSE_FROM gossamer_python_parts)
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} SUFFIX ${GOSSAMER_PYTHON_SUFFIX} DEFINE_SYMBOL ""
    LIBRARY_OUTPUT_DIRECTORY ${GOSSAMER_MODULE_FOLDER})
endfunction()

file(GLOB gossamer_python_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bindings/*.cpp)
set(gossamer_python_tests ${gossamer_python_sources})
list(FILTER gossamer_python_sources EXCLUDE REGEX "(_test|/module)\\.cpp$")
list(FILTER gossamer_python_tests INCLUDE REGEX "_test\\.cpp$")

# What both modules are made of. Its heaviest header costs seconds per file, and is precompiled.
add_library(gossamer_python_parts OBJECT ${gossamer_python_sources})
gossamer_python_flags(gossamer_python_parts)
target_precompile_headers(gossamer_python_parts PRIVATE <torch/csrc/utils/pybind.h>)

gossamer_python_module(gossamer_python _core ${CMAKE_SOURCE_DIR}/bindings/module.cpp)

# The package's other files stand beside the module as links, so that it can be imported from here.
file(GLOB_RECURSE gossamer_package RELATIVE ${CMAKE_SOURCE_DIR}/python CONFIGURE_DEPENDS
     ${CMAKE_SOURCE_DIR}/python/*.py ${CMAKE_SOURCE_DIR}/python/*.pyi
     ${CMAKE_SOURCE_DIR}/python/*.html ${CMAKE_SOURCE_DIR}/python/*.css
     ${CMAKE_SOURCE_DIR}/python/*.typed)
foreach(file ${gossamer_package})
  cmake_path(GET file PARENT_PATH folder)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/python/${folder})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/python/${file} ${CMAKE_BINARY_DIR}/python/${file} SYMBOLIC)
endforeach()
file(CREATE_LINK ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${GOSSAMER_PYTHON_FOLDER}/bin SYMBOLIC)
# Links to files that were renamed or removed since.
file(GLOB_RECURSE gossamer_links ${CMAKE_BINARY_DIR}/python/*.py*)
foreach(link ${gossamer_links})
  if(IS_SYMLINK ${link} AND NOT EXISTS ${link})
    file(REMOVE ${link})
  endif()
endforeach()

# To be read before the module is loaded.
file(CONFIGURE OUTPUT ${GOSSAMER_PYTHON_FOLDER}/_built.py CONTENT
     "\"\"\"What this build is.\"\"\"

VERSION = \"@PROJECT_VERSION@\"
" @ONLY)

# gossamer_install_package(): what goes beside the package's Python files; what needs libtorch, into
# the folder of its series. Python has loaded libtorch before the module, and the package's command
# says where it is before it starts the program; the rpaths serve whoever starts that by hand.
function(gossamer_install_package)
  set_target_properties(gossamer_python gossamer-train PROPERTIES
    INSTALL_RPATH "$ORIGIN/../../torch/lib")
  install(TARGETS gossamer_python LIBRARY
          DESTINATION ${GOSSAMER_SERIES_FOLDER} COMPONENT package)
  install(TARGETS gossamer-train RUNTIME DESTINATION ${GOSSAMER_SERIES_FOLDER} COMPONENT package)
  install(TARGETS gossamer RUNTIME DESTINATION bin COMPONENT package)
  install(FILES ${CMAKE_BINARY_DIR}/python/gossamer/_built.py DESTINATION . COMPONENT package)
endfunction()
if(NOT GOSSAMER_SANITIZE)
  # When all targets are there.
  cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL gossamer_install_package)
endif()

if(GOSSAMER_TESTS)
  # Tests of C++ that need what only Python can make.
  gossamer_python_module(gossamer_python_test _core_test ${gossamer_python_tests})
  target_link_libraries(gossamer_python_test PRIVATE GTest::gtest)
  add_subdirectory(${CMAKE_SOURCE_DIR}/tests/device ${CMAKE_BINARY_DIR}/tests/device)
endif()
