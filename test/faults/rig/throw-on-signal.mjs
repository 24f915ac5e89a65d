// Loaded into a process under test with NODE_OPTIONS=--import: SIGUSR2 throws, SIGHUP leaves a rejection unhandled.
process.on('SIGUSR2', () => {
  throw new Error('injected exception')
})
process.on('SIGHUP', () => {
  void Promise.reject(new Error('injected rejection'))
})
