import type { z } from 'zod';
import type { CallInput, Endpoint, ReplyOf, Role, RunLabels, WorkflowRun } from '../../../contracts/index.ts';
import type { ToolClient } from './tool-client.ts';

/** JSON Schema of an object, as MCP clients expect for inputs. */
export type ObjectSchema = { type: 'object'; [key: string]: unknown };

/** Operations that a tool uses while it runs. */
export interface ToolRun {
  /** Calls an endpoint with the rights of the caller. */
  call<E extends Endpoint>(endpoint: E, input: CallInput<E>): Promise<ReplyOf<E>>;
  client: ToolClient;
  signal: AbortSignal;
  /** Asks the person at the client about a waiting run. Undefined where the client cannot ask. */
  questions?: RunQuestions | undefined;
}

export interface RunQuestions {
  /** Applies the answers that came with the call. */
  take(runId: string): Promise<void>;
  /** Asks what the run waits for. Returns whether an answer can come during the call. */
  ask(run: WorkflowRun): Promise<boolean>;
}

/** Options of a run that a client starts as a task. */
export interface TaskStart {
  labels: RunLabels;
  idempotencyKey: string | undefined;
}

export interface Tool {
  name: string;
  title: string;
  description: string;
  inputSchema: ObjectSchema;
  /** Schema of the result. Results are then sent as they are, without a wrapper. */
  outputSchema?: ObjectSchema | undefined;
  /** The lowest role that may call the tool. */
  needs: Role;
  readOnly: boolean;
  /** A destructive tool also needs a role that was given explicitly, or an administrator of the platform. */
  destructive: boolean;
  /** Whether results contain data of senders, plugins or other systems. */
  hasOutsideData: boolean;
  /** Whether the result can be content blocks, which are sent as they are. */
  mayReturnContent?: boolean;
  /** Runs the tool. Throws VALIDATION_ERROR for an invalid input. */
  run(input: unknown, run: ToolRun): Promise<unknown>;
  /** Starts the run of a task. Only tools whose work is a run have it. */
  startRun?(input: unknown, run: ToolRun, start: TaskStart): Promise<WorkflowRun>;
}

export interface PlatformToolOptions<Input extends z.ZodObject>
  extends Pick<Tool, 'name' | 'title' | 'description' | 'needs'> {
  input: Input;
  readOnly?: boolean;
  destructive?: boolean;
  hasOutsideData?: boolean;
  run(input: z.output<Input>, run: ToolRun): Promise<unknown>;
}
