export { grantedNames } from './environment.ts';
export { grantFaults } from './grant-faults.ts';
export { type GuardedPaths, projectSecrets, userSecrets } from './guarded-paths.ts';
export {
  type Launch,
  type LaunchInput,
  needsKernelSandbox,
  prepareLaunch,
  type SandboxInForce,
  type SandboxMode,
  type SandboxPreference,
  type SandboxStatus,
  sandboxInForce,
  sandboxStatus,
} from './launch.ts';
