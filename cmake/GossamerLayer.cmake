# One folder = one layer = one library, with its tests and benchmarks beside its sources.

add_library(gossamer_options INTERFACE)
target_include_directories(gossamer_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(gossamer_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wswitch
  -Wno-missing-field-initializers -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 with -O3 sees overlaps and overflows in `"literal" + std::string(…)` that are not
  # there (GCC PR105651).
  target_compile_options(gossamer_options INTERFACE -Wno-restrict -Wno-stringop-overflow
    -Wno-stringop-overread -Wno-array-bounds)
endif()
if(CMAKE_BUILD_TYPE STREQUAL Release)
  # What users run reads files and talks to peers: a mistake there ends the program. Distributions
  # that set _FORTIFY_SOURCE themselves would have it defined twice.
  target_compile_options(gossamer_options INTERFACE
    -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -D_GLIBCXX_ASSERTIONS)
  add_link_options(-Wl,-z,relro,-z,now)
endif()
if(GOSSAMER_SANITIZE)
  add_compile_options(-fsanitize=${GOSSAMER_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${GOSSAMER_SANITIZE})
endif()
if(GOSSAMER_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "GOSSAMER_FUZZ needs clang: give it as CMAKE_CXX_COMPILER")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
  # Pragmas of g++, literals that say what an assertion is about, and stable_sort of libstdc++ 12.
  target_compile_options(gossamer_options INTERFACE
    -Wno-unknown-pragmas -Wno-string-conversion -Wno-deprecated-declarations)
endif()

find_program(GOSSAMER_CCACHE ccache)
if(GOSSAMER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without this sloppiness ccache takes no file that uses a precompiled header; by the compiler's
  # list of dependencies it knows a file without preprocessing it first. Clones in several folders
  # have the same paths below them.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${GOSSAMER_CCACHE})
endif()

# Linking against libtorch takes seconds with GNU ld and less than one with mold.
find_program(GOSSAMER_MOLD mold)
if(GOSSAMER_MOLD AND NOT GOSSAMER_OLD_SYSTEM AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND
   CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1)
  add_link_options(-fuse-ld=mold)
endif()

# gossamer_together(<targets…>): compiles files several at a time, where each would pay seconds for
# headers. Their unnamed namespaces are one then; -DGOSSAMER_UNITY=OFF compiles each alone.
function(gossamer_together)
  foreach(target ${ARGN})
    if(TARGET ${target} AND GOSSAMER_UNITY)
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
      if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
        # A private Impl may hold what is in an unnamed namespace; g++ takes it for a header's.
        target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
      endif()
    endif()
  endforeach()
endfunction()

# gossamer_test(<target> [OWN_PRECOMPILED] SOURCES <files…> LIBS <targets…>)
# A program of GTest whose cases are tests of ctest. For a test's own code the time to compile is
# what counts: GTest is precompiled once for all, with what most tests include beside it, and the
# optimiser does little. What is tested is compiled as ever. OWN_PRECOMPILED does neither.
function(gossamer_test target)
  cmake_parse_arguments(ARG "OWN_PRECOMPILED" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_LIBS} GTest::gtest_main)
  if(NOT ARG_OWN_PRECOMPILED)
    get_property(precompiled GLOBAL PROPERTY gossamer_test_precompiled)
    if(precompiled)
      target_precompile_headers(${target} REUSE_FROM ${precompiled})
    else()
      set_property(GLOBAL PROPERTY gossamer_test_precompiled ${target})
      target_precompile_headers(${target} PRIVATE
        <gtest/gtest.h> <algorithm> <array> <chrono> <cmath> <filesystem> <functional> <map> <memory>
        <numeric> <optional> <set> <span> <sstream> <string> <thread> <vector>)
    endif()
    set(level -O1)
    if(GOSSAMER_SANITIZE)
      set(level -O0)
    endif()
    target_compile_options(${target} PRIVATE ${level} -fpch-preprocess)  # the latter is for ccache
  endif()
  # Tests run side by side: threads of OpenMP that spin would keep others from what they wait for.
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 60 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
                       PROPERTIES LABELS "fast" TIMEOUT 300 ENVIRONMENT OMP_WAIT_POLICY=passive)
endfunction()

# gossamer_layer(NAME base [SERIAL] [ALONE] [OWN_PRECOMPILED] USES <layers…> LIBS <third-party targets…>)
# Globs the folder: *_test.cpp and *_oracle.cpp become <name>_test, *_bench.cpp become <name>_bench;
# *_fuzz.cpp are kept for gossamer_fuzzers().
# ALONE: its files are never compiled together.
# A SERIAL layer starts no thread: its tests have nothing to show to the thread sanitizer.
function(gossamer_layer)
  cmake_parse_arguments(ARG "SERIAL;ALONE;OWN_PRECOMPILED" "NAME" "USES;LIBS" ${ARGN})
  set(folder ${CMAKE_SOURCE_DIR}/gossamer/${ARG_NAME})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  set(tests ${sources})
  set(benches ${sources})
  list(FILTER tests INCLUDE REGEX "(_test|_oracle)\\.cpp$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "(_test|_oracle|_bench|_fuzz|_main)\\.cpp$")
  set(target gossamer_${ARG_NAME})
  set(uses ${ARG_USES})
  list(TRANSFORM uses PREPEND gossamer_)
  if(NOT sources)
    message(FATAL_ERROR "layer ${ARG_NAME} has no sources in ${folder}")
  endif()
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC gossamer_options ${uses} ${ARG_LIBS} Threads::Threads)
  if(GOSSAMER_ALONE)
    # nothing is precompiled
  elseif(ARG_NAME STREQUAL base)
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <chrono> <cmath> <filesystem> <functional> <map> <memory> <numeric>
      <optional> <span> <sstream> <string> <thread> <vector>)
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  elseif(NOT ARG_NAME MATCHES "^(kernels|torch|train)$")  # which have flags or headers of their own
    target_precompile_headers(${target} REUSE_FROM gossamer_base)
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
  if(ARG_SERIAL AND GOSSAMER_SANITIZE STREQUAL "thread")
    set(tests "")
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)  # built where a test needs it
  endif()
  if(GOSSAMER_TESTS AND tests)
    set(precompiled "")
    if(ARG_OWN_PRECOMPILED)
      set(precompiled OWN_PRECOMPILED)
    endif()
    gossamer_test(${ARG_NAME}_test ${precompiled} SOURCES ${tests} LIBS ${target})
  endif()
  if(NOT ARG_ALONE)
    gossamer_together(${ARG_NAME}_test)
    if(NOT GOSSAMER_ALONE)
      gossamer_together(${target})
    endif()
  endif()
  if(GOSSAMER_BENCHES AND benches)
    add_executable(${ARG_NAME}_bench ${benches})
    target_link_libraries(${ARG_NAME}_bench PRIVATE ${target} benchmark::benchmark_main)
  endif()
endfunction()
