/**
 * Test API for plugin authors (`svc-platform/testing`). Handlers run as in production, in the sandboxed runner and
 * behind real services. @spec docs/plugins.md "Testing"
 */
export type { CommandResult, WebhookFixture } from '../contracts/index.ts';
export type {
  CallerOptions,
  CommandOptions,
  DeliveryAnswer,
  DeliveryOptions,
  RouteAnswer,
  RouteOptions,
  SignDelivery,
  TestLog,
  ValidatorRequest,
  WebhookOptions,
} from './call-types.ts';
export type { ReplayOptions } from './fixtures.ts';
export type { EmittedRecord, TestHost, TestHostOptions } from './host-types.ts';
export type { PluginTypes, UntypedPlugin } from './result-types.ts';
export { createTestHost } from './test-host.ts';
