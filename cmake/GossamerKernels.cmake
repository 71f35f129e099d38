# How the kernels are compiled: no contraction anywhere, so that all instruction sets give the same
# bits, and one file for each instruction set. Included where gossamer_kernels is made, because
# properties of source files belong to a folder.

set(kernels_folder ${CMAKE_SOURCE_DIR}/gossamer/kernels)
target_compile_options(gossamer_kernels PRIVATE
  -ffp-contract=off -fno-math-errno -fno-trapping-math)
# What is given is checked once per call, in checks.cpp. A property of the sources, for it must stand
# behind the definition in the options of all targets.
if(CMAKE_BUILD_TYPE STREQUAL Release)
  get_target_property(kernels_sources gossamer_kernels SOURCES)
  set_property(SOURCE ${kernels_sources} APPEND PROPERTY COMPILE_OPTIONS -U_GLIBCXX_ASSERTIONS)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(kernels_level -O3)
  if(GOSSAMER_SANITIZE)
    set(kernels_level "")  # three times as long to compile
  endif()
  set_property(SOURCE ${kernels_folder}/avx2_table.cpp APPEND PROPERTY
    COMPILE_OPTIONS "${kernels_level};-march=x86-64-v3;-maes")
  set_property(SOURCE ${kernels_folder}/avx512_table.cpp APPEND PROPERTY
    COMPILE_OPTIONS "${kernels_level};-march=x86-64-v4;-maes;-mprefer-vector-width=512")
endif()

if(GOSSAMER_TESTS AND TARGET kernels_test)
  foreach(isa ref avx2 avx512 unknown)
    add_test(NAME Isa.EnvironmentForces_${isa}
             COMMAND kernels_test --gtest_filter=Isa.EnvironmentIsHonoured)
    set_tests_properties(Isa.EnvironmentForces_${isa} PROPERTIES
      LABELS "fast" TIMEOUT 60 ENVIRONMENT "GOSSAMER_ISA=${isa}")
  endforeach()
endif()

if(GOSSAMER_BENCHES)
  set_source_files_properties(${kernels_folder}/stream_yardstick_bench.cpp PROPERTIES
    COMPILE_OPTIONS "-O3")
  add_library(bench_kernels_c SHARED ${CMAKE_SOURCE_DIR}/bench/kernels/kernels_c.cpp
              ${kernels_folder}/stream_yardstick_bench.cpp)
  target_link_libraries(bench_kernels_c PRIVATE gossamer_kernels)
  set_target_properties(bench_kernels_c PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
endif()
