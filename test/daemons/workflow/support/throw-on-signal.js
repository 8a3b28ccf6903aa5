// Loaded into a service under test: a crash from inside, which takes the way of every error that nothing catches.
process.on('SIGUSR2', () => {
  throw new Error('A test makes this service crash.');
});
