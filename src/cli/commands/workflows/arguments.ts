import { z } from 'zod';
import { RunId } from '../../../contracts/index.ts';

export const RunArg = RunId.describe('run id');

export const StepArg = z.string().min(1).max(256).describe('step: <job>.<step>');
