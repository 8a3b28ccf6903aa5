// Preloaded into each process of a platform: service processes become stand-ins, which start in a fraction of the CPU time.
const [, program = '', name] = process.argv;
const isService = /(?:dist\/daemon\.js|src\/daemons\/main\.ts)$/.test(program);
const realServices = (process.env.TEST_REAL_SERVICES ?? '').split(',');

if (isService && !realServices.includes(name)) {
  const { serveStandIn } = await import('./stand-in-service.ts');
  serveStandIn(name);
  // The program itself is never reached.
  await new Promise(() => {});
}
