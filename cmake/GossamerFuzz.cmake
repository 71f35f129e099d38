# The fuzz targets of all layers, as one test with their seeds and, with GOSSAMER_FUZZ, as a program
# of libFuzzer. See Note [Fuzz targets].
set(fuzz_folder ${CMAKE_SOURCE_DIR}/tests/fuzz)
file(GLOB_RECURSE fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/gossamer/*_fuzz.cpp)
set(fuzz_libs gossamer_cli gossamer_engine gossamer_checkpoint gossamer_data)

if(GOSSAMER_TESTS)
  gossamer_test(fuzz_test SOURCES ${fuzz_sources} ${fuzz_folder}/targets.cpp
                ${fuzz_folder}/seeds_test.cpp LIBS ${fuzz_libs})
  gossamer_together(fuzz_test)
endif()

if(GOSSAMER_FUZZ)
  add_executable(gossamer_fuzz ${fuzz_sources} ${fuzz_folder}/targets.cpp
                 ${fuzz_folder}/fuzz_main.cpp)
  target_link_libraries(gossamer_fuzz PRIVATE ${fuzz_libs})
  target_link_options(gossamer_fuzz PRIVATE -fsanitize=fuzzer)
endif()
