"""DirectML's hello world, step by step, on wgpu: a cumulative sum from device to readback.

Each step names the C++ it ports. What a C++ program does through Direct3D 12 (device, buffers, command list, queue) is
the caller's own wgpu here: dmlgpu only validates, and records into the caller's command encoder.
"""

from __future__ import annotations

import numpy as np
import wgpu

import dmlgpu
from dmlgpu import directml as dml


def main() -> None:
    # InitializeDirect3D12: D3D12CreateDevice, CreateCommandQueue. Any adapter does; this one heeds DMLGPU_ADAPTER.
    d3d12_device = dmlgpu.default_device().description.adapter.request_device_sync()
    command_queue = d3d12_device.queue

    # DMLCreateDevice(d3D12Device.Get(), dmlCreateDeviceFlags, IID_PPV_ARGS(dmlDevice.GetAddressOf()))
    dml_device = dml.DMLCreateDevice(d3d12_device, dml.DML_CREATE_DEVICE_FLAG_DEBUG)

    # constexpr UINT tensorSizes[4] = { 1, 2, 3, 4 }; DMLCalcBufferTensorSize(...)
    sizes = (1, 2, 3, 4)
    tensor_buffer_size = dml.DMLCalcBufferTensorSize(dml.DML_TENSOR_DATA_TYPE_FLOAT32, 4, sizes)

    # DML_BUFFER_TENSOR_DESC dmlBufferTensorDesc = {}; DML_TENSOR_DESC dmlTensorDesc = {};
    buffer_tensor_desc = dml.DML_BUFFER_TENSOR_DESC(
        DataType=dml.DML_TENSOR_DATA_TYPE_FLOAT32,
        Flags=dml.DML_TENSOR_FLAG_NONE,
        DimensionCount=4,
        Sizes=sizes,
        Strides=None,
        TotalTensorSizeInBytes=tensor_buffer_size,
    )
    tensor_desc = dml.DML_TENSOR_DESC(dml.DML_TENSOR_TYPE_BUFFER, buffer_tensor_desc)

    # DML_CUMULATIVE_SUMMATION_OPERATOR_DESC; dmlDevice->CreateOperator(&dmlOperatorDesc, IID_PPV_ARGS(...))
    summation_desc = dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(
        InputTensor=tensor_desc,
        OutputTensor=tensor_desc,
        Axis=3,
        AxisDirection=dml.DML_AXIS_DIRECTION_INCREASING,
        HasExclusiveSum=False,
    )
    dml_operator = dml_device.CreateOperator(
        dml.DML_OPERATOR_DESC(dml.DML_OPERATOR_CUMULATIVE_SUMMATION, summation_desc)
    )

    # dmlDevice->CompileOperator(dmlOperator.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(...))
    compiled_operator = dml_device.CompileOperator(dml_operator, dml.DML_EXECUTION_FLAG_NONE)

    # dmlDevice->CreateOperatorInitializer(1, dmlCompiledOperators, IID_PPV_ARGS(...))
    initializer = dml_device.CreateOperatorInitializer(1, [compiled_operator])

    # GetBindingProperties of both; CreateDescriptorHeap. wgpu has no descriptor heaps: only the count is kept.
    initialize_properties = initializer.GetBindingProperties()
    execute_properties = compiled_operator.GetBindingProperties()
    descriptor_count = max(initialize_properties.RequiredDescriptorCount, execute_properties.RequiredDescriptorCount)

    # dmlDevice->CreateBindingTable(&dmlBindingTableDesc, IID_PPV_ARGS(...))
    binding_table = dml_device.CreateBindingTable(dml.DML_BINDING_TABLE_DESC(initializer, None, None, descriptor_count))

    # CreateCommittedResource for the temporary and the persistent resource, where their sizes are not 0.
    temporary_size = max(initialize_properties.TemporaryResourceSize, execute_properties.TemporaryResourceSize)
    persistent_size = execute_properties.PersistentResourceSize
    temporary_buffer = persistent_buffer = None
    if temporary_size != 0:
        temporary_buffer = d3d12_device.create_buffer(size=temporary_size, usage=wgpu.BufferUsage.STORAGE)
    if persistent_size != 0:
        persistent_buffer = d3d12_device.create_buffer(size=persistent_size, usage=wgpu.BufferUsage.STORAGE)

    if temporary_buffer is not None and initialize_properties.TemporaryResourceSize != 0:
        buffer_binding = dml.DML_BUFFER_BINDING(temporary_buffer, 0, temporary_size)
        binding_table.BindTemporaryResource(dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, buffer_binding))
    if persistent_buffer is not None:  # The initializer's output.
        buffer_binding = dml.DML_BUFFER_BINDING(persistent_buffer, 0, persistent_size)
        binding_table.BindOutputs(1, [dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, buffer_binding)])

    # dmlDevice->CreateCommandRecorder; dmlCommandRecorder->RecordDispatch(commandList, initializer, bindingTable)
    command_recorder = dml_device.CreateCommandRecorder()
    command_list = d3d12_device.create_command_encoder()
    command_recorder.RecordDispatch(command_list, initializer, binding_table)

    # CloseExecuteResetWait. wgpu's queue keeps the order by itself.
    command_queue.submit([command_list.finish()])

    # dmlBindingTable->Reset(&dmlBindingTableDesc), for the execution
    binding_table.Reset(dml.DML_BINDING_TABLE_DESC(compiled_operator, None, None, descriptor_count))
    if temporary_buffer is not None and execute_properties.TemporaryResourceSize != 0:
        buffer_binding = dml.DML_BUFFER_BINDING(temporary_buffer, 0, temporary_size)
        binding_table.BindTemporaryResource(dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, buffer_binding))
    if persistent_buffer is not None:
        buffer_binding = dml.DML_BUFFER_BINDING(persistent_buffer, 0, persistent_size)
        binding_table.BindPersistentResource(dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, buffer_binding))

    # The input buffer, filled through an upload heap in C++; then dmlBindingTable->BindInputs(1, &inputBindingDesc)
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_DST | wgpu.BufferUsage.COPY_SRC
    input_buffer = d3d12_device.create_buffer(size=tensor_buffer_size, usage=usage)
    x = np.full(sizes, 1.618, dtype=np.float32)
    command_queue.write_buffer(input_buffer, 0, x)
    print("input tensor:", *np.round(x.ravel(), 3))
    buffer_binding = dml.DML_BUFFER_BINDING(input_buffer, 0, tensor_buffer_size)
    binding_table.BindInputs(1, [dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, buffer_binding)])

    # The output buffer; dmlBindingTable->BindOutputs(1, &outputBindingDesc)
    output_buffer = d3d12_device.create_buffer(size=tensor_buffer_size, usage=usage)
    buffer_binding = dml.DML_BUFFER_BINDING(output_buffer, 0, tensor_buffer_size)
    binding_table.BindOutputs(1, [dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, buffer_binding)])

    # dmlCommandRecorder->RecordDispatch(commandList.Get(), dmlCompiledOperator.Get(), dmlBindingTable.Get())
    command_list = d3d12_device.create_command_encoder()
    command_recorder.RecordDispatch(command_list, compiled_operator, binding_table)
    command_queue.submit([command_list.finish()])

    # The readback heap, Map and Unmap
    y = np.frombuffer(command_queue.read_buffer(output_buffer), dtype=np.float32).reshape(sizes)
    print("output tensor:", *np.round(y.ravel(), 3))


if __name__ == "__main__":
    main()
