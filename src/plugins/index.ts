export { createTokenBucket } from '../kit/limits/token-bucket.ts';
export { backendNameOf } from './backend-name.ts';
export { ContainerBackend } from './backends/container/index.ts';
export type { ContainerAccess } from './backends/container/spec.ts';
export { createFrameJoiner, type FrameJoiner } from './backends/host/frame-joiner.ts';
export { createHostBackend, type HostBackendDeps, type RunOnHost } from './backends/host/index.ts';
export { Outbox, type OutboxWire } from './backends/host/outbox.ts';
export { cancelled, timedOut } from './backends/worker/call.ts';
export { type CallRouter, createCallRouter } from './backends/worker/call-router.ts';
export { readResult } from './backends/worker/frames.ts';
export { WorkerBackend, type WorkerBackendDeps } from './backends/worker/index.ts';
export { type OpenStream, openStream } from './backends/worker/open-stream.ts';
export { withDefaults } from './config-defaults.ts';
export { declaredPermissions, requireDeclaredHost } from './declared-handlers.ts';
export { createDescriber, type DescribedPlugin, type PluginDescriber } from './describe.ts';
export type * from './execution.ts';
export { isInside } from './inside.ts';
export {
  createIntegrityCache,
  INSTALL_LIMITS,
  integrityOf,
  manifestDigest,
  packageIntegrityOf,
} from './integrity.ts';
export { lockFileStamp, pluginsFolder, readLockFile, writeLockFile } from './lock-file.ts';
export { kernelSandboxFaults } from './mcp/server-faults.ts';
export { toolDigest } from './mcp/tool-digest.ts';
export { portable as portableSchema } from './mcp/tool-schemas.ts';
export {
  addNotShared,
  differingPlugins,
  NOT_SHARED_FILE,
  readNotShared,
  stillNotShared,
} from './not-shared.ts';
export { readPackageJson } from './package-json.ts';
export { packFolder, unpackFolder } from './package-stream.ts';
export { permissionPlaces, permissionSets } from './permission-sets.ts';
export { relate } from './registry/conflicts-and-dependencies.ts';
export { findFolders } from './registry/folders.ts';
export { zodRefs } from './registry/handler-files.ts';
export { type Kept, keepRunning } from './registry/keep-running.ts';
export {
  type BrokenPlugin,
  createRegistry,
  type DisabledPlugin,
  type LoadedPlugin,
  type LoadPluginsOptions,
  loadPlugins,
  type PluginFault,
  type PluginRegistry,
} from './registry/registry.ts';
export { adaptersAskedFor } from './required-adapters.ts';
export { resolveDependencies } from './sandbox/dependencies.ts';
export {
  type GuardedPaths,
  needsKernelSandbox,
  projectSecrets,
  type SandboxInForce,
  type SandboxPreference,
  type SandboxStatus,
  sandboxInForce,
  sandboxStatus,
  userSecrets,
} from './sandbox/index.ts';
export { selfStarting, workflowBriefs } from './self-starting.ts';
export type { StubFetch } from './services/fetch.ts';
export {
  type AdapterParts,
  type AdapterWatch,
  type CallScope,
  type ConnectionAccess,
  callScope,
  createPlatformServices,
  type EmitAccess,
  type ExecutionListener,
  ExecutionListeners,
  type Invocation,
  type InvokeCommand,
  type JobAccess,
  type ObjectAccess,
  type ObjectScope,
  type PlatformServicesDeps,
  type ReplayId,
  type SecretAccess,
  type StateAccess,
  type StateItem,
  type StateScope,
  type StepAccess,
  secretMissing,
  type VectorAccess,
  type VectorScope,
  type WebhookAccess,
  type WorkflowAccess,
} from './services/index.ts';
export { permissionOf } from './services/permission-of.ts';
export { readSourceCode, type SourceCode } from './source-code.ts';
export { fileStamp, sourceDigest, sourceStamp } from './source-stamp.ts';
export { createStreamCredit, type StreamCredit } from './stream-credit.ts';
export { parseUntrusted } from './untrusted-json.ts';
export {
  codeFaults,
  type ValidatedPlugin,
  type ValidateOptions,
  validatePlugin,
} from './validate.ts';
