// The main program of every CppUnit test binary: runs all registered tests, or those whose
// path contains the first argument. Exit status 0 if at least one test ran and all passed.
#include <cppunit/BriefTestProgressListener.h>
#include <cppunit/CompilerOutputter.h>
#include <cppunit/Test.h>
#include <cppunit/TestResult.h>
#include <cppunit/TestResultCollector.h>
#include <cppunit/extensions/TestFactoryRegistry.h>

#include <csignal>
#include <iostream>
#include <string>

namespace {
void collect(CppUnit::Test* test, const std::string& part, CppUnit::TestResult* result) {
  if (test->getChildTestCount() == 0) {
    if (test->getName().find(part) != std::string::npos) test->run(result);
    return;
  }
  for (int i = 0; i < test->getChildTestCount(); ++i)
    collect(test->getChildTestAt(i), part, result);
}
}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  CppUnit::TestResult result;
  CppUnit::TestResultCollector collector;
  CppUnit::BriefTestProgressListener progress;
  result.addListener(&collector);
  result.addListener(&progress);
  CppUnit::Test* all = CppUnit::TestFactoryRegistry::getRegistry().makeTest();
  collect(all, argc > 1 ? argv[1] : "", &result);
  CppUnit::CompilerOutputter(&collector, std::cerr).write();
  delete all;
  return collector.wasSuccessful() && collector.runTests() > 0 ? 0 : 1;
}
