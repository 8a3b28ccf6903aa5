/** This process's environment as a user's shell would have it: nothing in it speaks to `svc`, or of these tests. */
export function userEnvironment(): NodeJS.ProcessEnv {
  const ours = /^(?:SVC_|GATEWAY_|NODE_ENV$|VITEST|FORCE_COLOR$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
}
