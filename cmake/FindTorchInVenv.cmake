# Finds the libtorch inside the wheel of a Python environment and defines gossamer_libtorch.
#
# By hand and not through TorchConfig.cmake, which goes looking for CUDA, MKL, protobuf and kineto
# and sets global flags; the wheel needs an include path, three libraries and an rpath. The wheel's
# place and version come from its metadata: importing torch would cost seconds per configure.

set(GOSSAMER_TORCH_SERIES_TRIED 2.13 2.14 2.15)  # newest last; the tests run with the first
option(GOSSAMER_ANY_TORCH "Build for the torch that is there, though its series was not tried" OFF)

set(GOSSAMER_PYTHON "" CACHE FILEPATH
    "Python with torch; empty takes .venv/bin/python, else python3")
set(gossamer_python ${GOSSAMER_PYTHON})
if(NOT gossamer_python)
  # Looked up at every configure, so that an environment made later is found.
  if(EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
    set(gossamer_python ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  else()
    set(gossamer_python python3)
  endif()
endif()

set(gossamer_torch_remedy
    "make an environment with `python3 -m venv .venv && .venv/bin/pip install "
    "'torch==2.13.*'`, or name one with -DGOSSAMER_PYTHON=<path to its python>, "
    "or build without torch with -DGOSSAMER_TORCH=OFF")
string(CONCAT gossamer_torch_remedy ${gossamer_torch_remedy})

execute_process(
  COMMAND ${gossamer_python} -c
          "import importlib.metadata as m, importlib.util as u
print(m.version('torch') + ';' + u.find_spec('torch').submodule_search_locations[0], end='')"
  WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
  RESULT_VARIABLE gossamer_torch_result
  OUTPUT_VARIABLE gossamer_torch_answer
  ERROR_QUIET)
if(NOT gossamer_torch_result EQUAL 0)
  message(FATAL_ERROR "[cmake] no torch found, got python '${gossamer_python}'; "
                      "${gossamer_torch_remedy}")
endif()
list(GET gossamer_torch_answer 0 GOSSAMER_TORCH_VERSION)
list(GET gossamer_torch_answer 1 GOSSAMER_TORCH_DIR)
string(REGEX MATCH "^[0-9]+\\.[0-9]+" GOSSAMER_TORCH_SERIES "${GOSSAMER_TORCH_VERSION}")
if(NOT GOSSAMER_ANY_TORCH AND NOT GOSSAMER_TORCH_SERIES IN_LIST GOSSAMER_TORCH_SERIES_TRIED)
  list(JOIN GOSSAMER_TORCH_SERIES_TRIED ", " gossamer_tried)
  message(FATAL_ERROR "[cmake] torch must be of one of the series ${gossamer_tried}, got "
                      "${GOSSAMER_TORCH_VERSION} in ${GOSSAMER_TORCH_DIR}; ${gossamer_torch_remedy}")
endif()
string(REPLACE "." "_" GOSSAMER_SERIES_FOLDER torch_${GOSSAMER_TORCH_SERIES})  # in the package
message(STATUS "torch ${GOSSAMER_TORCH_VERSION} in ${GOSSAMER_TORCH_DIR}")

add_library(gossamer_libtorch INTERFACE)
target_include_directories(gossamer_libtorch SYSTEM INTERFACE
  ${GOSSAMER_TORCH_DIR}/include ${GOSSAMER_TORCH_DIR}/include/torch/csrc/api/include)
# Wheels of this series exist with the C++11 ABI only, and <torch/…> assumes it.
target_compile_definitions(gossamer_libtorch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
foreach(name torch torch_cpu c10)
  if(NOT EXISTS ${GOSSAMER_TORCH_DIR}/lib/lib${name}.so)
    message(FATAL_ERROR "[cmake] the torch wheel lacks lib${name}.so, got ${GOSSAMER_TORCH_DIR}/lib; "
                        "${gossamer_torch_remedy}")
  endif()
  target_link_libraries(gossamer_libtorch INTERFACE ${GOSSAMER_TORCH_DIR}/lib/lib${name}.so)
endforeach()
# A torch for CUDA needs more than we call.
target_link_options(gossamer_libtorch INTERFACE "LINKER:--allow-shlib-undefined")
