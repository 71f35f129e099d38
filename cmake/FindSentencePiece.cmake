# Finds SentencePiece (libsentencepiece-dev), which has no CMake file of its own, and defines
# gossamer_sentencepiece.
find_path(GOSSAMER_SENTENCEPIECE_INCLUDE sentencepiece_trainer.h)
find_library(GOSSAMER_SENTENCEPIECE sentencepiece)
find_library(GOSSAMER_SENTENCEPIECE_TRAIN sentencepiece_train)
if(NOT GOSSAMER_SENTENCEPIECE_INCLUDE OR NOT GOSSAMER_SENTENCEPIECE OR
   NOT GOSSAMER_SENTENCEPIECE_TRAIN)
  message(FATAL_ERROR "[cmake] SentencePiece is missing; install libsentencepiece-dev, or build "
                      "without torch with -DGOSSAMER_TORCH=OFF")
endif()
add_library(gossamer_sentencepiece INTERFACE)
target_include_directories(gossamer_sentencepiece SYSTEM INTERFACE
  ${GOSSAMER_SENTENCEPIECE_INCLUDE})
# Its version stands in its pkg-config file only; empty: unknown, which counts as old.
get_filename_component(sentencepiece_folder ${GOSSAMER_SENTENCEPIECE} DIRECTORY)
find_file(GOSSAMER_SENTENCEPIECE_PC sentencepiece.pc
  HINTS ${sentencepiece_folder}/pkgconfig ${sentencepiece_folder}/../share/pkgconfig)
set(GOSSAMER_SENTENCEPIECE_VERSION "")
if(GOSSAMER_SENTENCEPIECE_PC)
  file(STRINGS ${GOSSAMER_SENTENCEPIECE_PC} sentencepiece_line REGEX "^Version:")
  string(REGEX REPLACE "^Version: *" "" GOSSAMER_SENTENCEPIECE_VERSION "${sentencepiece_line}")
endif()
target_compile_definitions(gossamer_sentencepiece INTERFACE
  "GOSSAMER_SENTENCEPIECE_VERSION=\"${GOSSAMER_SENTENCEPIECE_VERSION}\"")
# The Python module is made of the same layer and calls none of it.
target_link_libraries(gossamer_sentencepiece INTERFACE
  -Wl,--push-state,--as-needed ${GOSSAMER_SENTENCEPIECE} ${GOSSAMER_SENTENCEPIECE_TRAIN}
  -Wl,--pop-state)
