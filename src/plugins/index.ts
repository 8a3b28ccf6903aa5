export { createWorkerBackend, type WorkerBackend, type WorkerBackendDeps } from './backends/worker/index.ts';
export { createDescriber, type DescribedPlugin, type PluginDescriber } from './describe.ts';
export type * from './execution.ts';
export {
  type BrokenPlugin,
  createRegistry,
  type LoadedPlugin,
  type LoadPluginsOptions,
  loadPlugins,
  type PluginFault,
  type PluginRegistry,
} from './registry.ts';
export { type SandboxInForce, sandboxInForce } from './sandbox/index.ts';
export {
  createPlatformServices,
  type PlatformServicesDeps,
  type StateAccess,
  type StateItem,
  type StateScope,
} from './services/index.ts';
export { type ValidatedPlugin, validatePlugin } from './validate.ts';
