export { grantedNames } from './environment.ts';
export {
  type Launch,
  type LaunchInput,
  prepareLaunch,
  type SandboxInForce,
  type SandboxMode,
  type SandboxPreference,
  sandboxInForce,
} from './launch.ts';
